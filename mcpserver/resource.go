package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A ResourceReader reads one resource.
type ResourceReader func(ctx context.Context) (*mcp.ReadResourceResult, error)

// A TemplateReader reads a resource whose URI matches a template.
type TemplateReader func(ctx context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error)

// AddResource adds a resource.
func (s *Server) AddResource(r *mcp.Resource, h ResourceReader) error { return errTodo }

// RemoveResource removes resources.
func (s *Server) RemoveResource(uris ...string) {}

// AddResourceTemplate adds a resource template.
func (s *Server) AddResourceTemplate(t *mcp.ResourceTemplate, h TemplateReader) error { return errTodo }

// RemoveResourceTemplate removes resource templates.
func (s *Server) RemoveResourceTemplate(uriTemplates ...string) {}

// NotifyResourceUpdated tells all sessions that subscribed to uri.
func (s *Server) NotifyResourceUpdated(uri string) {}

// TextResource is a result with one text resource.
func TextResource(uri, mimeType, text string) *mcp.ReadResourceResult { return nil }

// BlobResource is a result with one binary resource.
func BlobResource(uri, mimeType string, data []byte) *mcp.ReadResourceResult { return nil }
