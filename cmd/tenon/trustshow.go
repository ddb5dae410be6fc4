package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A projectFile is the content of a project's file, for the person who decides about it. References
// to variables are not expanded, and nothing is hidden: what looks like a secret may be a command.
type projectFile struct {
	servers map[string]json.RawMessage
	// settings are those that may have no effect without trust, by path.
	settings map[string]json.RawMessage
}

// readProjectFile parses a file with the given base name. Text that is not JSON has no content.
func readProjectFile(contents []byte, base string) projectFile {
	plain, err := hujson.Standardize(bytes.TrimPrefix(bytes.Clone(contents), []byte("\xef\xbb\xbf")))
	if err != nil {
		return projectFile{}
	}
	top := membersOf(plain)
	if base == ".mcp.json" {
		return projectFile{servers: membersOf(top["mcpServers"])}
	}
	for key, value := range membersOf(top["permissions"]) {
		top["permissions."+key] = value
	}
	maps.DeleteFunc(top, func(key string, value json.RawMessage) bool {
		switch key {
		case "permissions.deny", "permissions.ask", "disabledMcpjsonServers": // in force without trust
			return true
		case "permissions", "$schema":
			return true
		}
		return string(value) == "null"
	})
	return projectFile{settings: top}
}

// membersOf returns the members of an object, or nil.
func membersOf(value json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return nil
	}
	return members
}

// shownText bounds how much of a value is shown, in bytes.
const shownText = 600

// writeServer writes an entry: what it starts or connects to on one line, and each other key on one
// of its own.
func writeServer(w io.Writer, indent, head, name string, entry json.RawMessage) {
	members := membersOf(entry)
	var command, url, text string
	var words []json.RawMessage
	switch args := cmp.Or(string(members["args"]), "null"); {
	case json.Unmarshal(members["command"], &command) == nil && json.Unmarshal([]byte(args), &words) == nil:
		text = commandLine(command, words)
		delete(members, "command")
		delete(members, "args")
	case json.Unmarshal(members["url"], &url) == nil:
		text = clipText(url, shownText)
		delete(members, "url")
	}
	delete(members, "type")
	fmt.Fprintf(w, "%s%s%s: %s\n", indent, head, clipText(visible(name), shownText), text)
	writeValues(w, indent+"  ", members)
}

// commandLine returns a program with its arguments, those with unusual characters in quotation marks.
func commandLine(command string, args []json.RawMessage) string {
	words := []string{command}
	for _, raw := range args {
		var word string
		if json.Unmarshal(raw, &word) != nil {
			word = string(raw)
		}
		words = append(words, word)
	}
	for i, w := range words {
		if strings.ContainsAny(w, " \t\n\"'") || w == "" || printable(w) != w {
			w = fmt.Sprintf("%q", w)
		}
		words[i] = clipText(w, shownText)
	}
	return strings.Join(words, " ")
}

func writeValues(w io.Writer, indent string, values map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(w, "%s%s: %s\n", indent, clipText(visible(key), shownText), clipText(plainJSON(values[key]), shownText))
	}
}

// write writes the content of the file.
func (f projectFile) write(w io.Writer, indent string) {
	for _, name := range slices.Sorted(maps.Keys(f.servers)) {
		writeServer(w, indent, "server ", name, f.servers[name])
	}
	writeValues(w, indent, f.settings)
}
