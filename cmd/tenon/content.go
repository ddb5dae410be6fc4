package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// resultText returns the text of a result and a line for each block of another kind, or the
// structured content if there is nothing else.
func resultText(r *mcpserver.Result) string {
	var parts []string
	for _, c := range r.Content {
		text, _ := content(c)
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return string(r.StructuredContent)
	}
	return strings.Join(parts, "\n")
}

// content returns the text of a block, or a line about one that is not text with its bytes, if it
// has any.
func content(c mcp.Content) (text string, data []byte) {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text, nil
	case *mcp.ImageContent:
		return fmt.Sprintf("[image %s, %d bytes]", c.MIMEType, len(c.Data)), c.Data
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio %s, %d bytes]", c.MIMEType, len(c.Data)), c.Data
	case *mcp.ResourceLink:
		return fmt.Sprintf("[resource %s] %s", c.Name, c.URI), nil
	case *mcp.EmbeddedResource:
		return resourceText(c.Resource), cmp.Or(c.Resource, &mcp.ResourceContents{}).Blob
	}
	return fmt.Sprintf("[%T]", c), nil
}

// resourceText returns a resource's text, or a line about one that is not text.
func resourceText(r *mcp.ResourceContents) string {
	switch {
	case r == nil:
		return "[empty resource]"
	case r.Blob != nil:
		return fmt.Sprintf("[resource %s %s, %d bytes]", r.URI, r.MIMEType, len(r.Blob))
	}
	return r.Text
}
