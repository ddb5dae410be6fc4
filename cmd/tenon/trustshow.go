package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A projectFile is a file of a project, to be shown to the person who decides about it. It is shown as it stands, with
// its references to variables, which no secret stands behind, and with nothing hidden: what seems to be a secret may be
// a command.
type projectFile struct {
	name     string
	servers  map[string]json.RawMessage
	settings []setting // what counts with trust only, or may
}

type setting struct {
	path  string
	value json.RawMessage
}

// readProjectFile reads what a file says. What is no JSON says nothing.
func readProjectFile(name string, contents []byte) projectFile {
	f := projectFile{name: name}
	plain, err := hujson.Standardize(bytes.TrimPrefix(bytes.Clone(contents), []byte("\xef\xbb\xbf")))
	if err != nil {
		return f
	}
	top := membersOf(plain)
	if filepath.Base(name) == ".mcp.json" {
		f.servers = membersOf(top["mcpServers"])
		return f
	}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		inner := map[string]json.RawMessage{key: top[key]}
		if key == "permissions" {
			inner = map[string]json.RawMessage{}
			for k, v := range membersOf(top[key]) {
				inner[key+"."+k] = v
			}
		}
		for _, path := range slices.Sorted(maps.Keys(inner)) {
			if !narrows[path] && string(inner[path]) != "null" {
				f.settings = append(f.settings, setting{path, inner[path]})
			}
		}
	}
	return f
}

// narrows are the keys of a settings file that count without trust, and one that means nothing.
var narrows = map[string]bool{"permissions.deny": true, "permissions.ask": true, "disabledMcpjsonServers": true, "$schema": true}

// membersOf are the members of an object; of anything else there are none.
func membersOf(value json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return nil
	}
	return members
}

// shownText is how much of a value is shown, in bytes. How long it is, is told.
const shownText = 600

// writeServer writes what an entry says: what it starts or connects to on one line, and each other key on one of its own.
func writeServer(w io.Writer, indent, head, name string, entry json.RawMessage) {
	members := membersOf(entry)
	var command, url string
	words := []json.RawMessage{}
	used := []string{"type"}
	text := ""
	switch {
	case json.Unmarshal(members["command"], &command) == nil && json.Unmarshal(orNull(members["args"]), &words) == nil:
		text, used = commandLine(command, words), append(used, "command", "args")
	case json.Unmarshal(members["url"], &url) == nil:
		text, used = clipText(url, shownText), append(used, "url")
	}
	fmt.Fprintf(w, "%s%s%s: %s\n", indent, head, clipText(visible(name), shownText), text)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(used, key) {
			writeValue(w, indent+"  ", key, members[key])
		}
	}
}

func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

// commandLine is a program with its arguments, each whole and those with odd characters in quotation marks.
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

func writeValue(w io.Writer, indent, key string, value json.RawMessage) {
	fmt.Fprintf(w, "%s%s: %s\n", indent, clipText(visible(key), shownText), clipText(plainJSON(value), shownText))
}

// write writes what the file says, but for the servers that have been shown.
func (f projectFile) write(w io.Writer, indent string, shown []string) {
	for _, name := range slices.Sorted(maps.Keys(f.servers)) {
		if !slices.Contains(shown, name) {
			writeServer(w, indent, "server ", name, f.servers[name])
		}
	}
	for _, s := range f.settings {
		writeValue(w, indent, s.path, s.value)
	}
}

// says reports whether there is anything to write.
func (f projectFile) says(shown []string) bool {
	return len(f.settings) > 0 || slices.ContainsFunc(slices.Collect(maps.Keys(f.servers)), func(name string) bool { return !slices.Contains(shown, name) })
}
