package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// spreadValues lets --mcp-config and --add-dir have several values in a row, as the Claude Code CLI
// takes them: "--mcp-config a.json b.json". That one reads on to the next flag, the prompt included; here a word is
// a further value only if it cannot be meant as a prompt: for --mcp-config the name of a file, or JSON with servers,
// and for --add-dir a directory that is there. A 'tenon mcp' command has other words beside it, such as the name of a server:
// there a file has to be called so. What follows "--" is never one.
func spreadValues(root *cobra.Command, p *process, args []string) []string {
	c, rest, err := root.Find(args)
	if err != nil || c.Flags().Lookup("mcp-config") == nil {
		return args
	}
	more := map[string]func(*process, string) bool{"mcp-config": namesConfig, "add-dir": namesDir}
	if c.Name() != "run" {
		more = map[string]func(*process, string) bool{"mcp-config": looksConfig}
	}
	out := append([]string{}, args[:len(args)-len(rest)]...)
	if len(out) == 0 || out[len(out)-1] != c.Name() { // flags before the command
		return args
	}
	var last string // the flag whose values go on
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		switch {
		case arg == "--":
			return append(out, rest[i:]...)
		case strings.HasPrefix(arg, "-") && arg != "-":
			out = append(out, arg)
			name, _, whole := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			last = name
			if !whole && i+1 < len(rest) && wantsValue(c.Flags(), arg, name) {
				i++
				out = append(out, rest[i])
			}
		case more[last] != nil && more[last](p, arg):
			out = append(out, "--"+last+"="+arg)
		default:
			last = ""
			out = append(out, arg)
		}
	}
	return out
}

// wantsValue reports whether the next argument is the value of a flag.
func wantsValue(fs *pflag.FlagSet, arg, name string) bool {
	f := fs.Lookup(name)
	if !strings.HasPrefix(arg, "--") {
		if len(name) != 1 {
			return false
		}
		f = fs.ShorthandLookup(name)
	}
	return f != nil && f.NoOptDefVal == ""
}

// namesConfig reports whether a word is the value of --mcp-config rather than a prompt. A file that is not there is
// still meant as one.
func namesConfig(p *process, word string) bool {
	if looksConfig(p, word) {
		return true
	}
	info, err := os.Stat(p.path(word))
	return err == nil && info.Mode().IsRegular() && !strings.HasPrefix(word, "{")
}

// looksConfig reports whether a word is JSON with servers or the name of a JSON file, by itself.
func looksConfig(_ *process, word string) bool {
	if strings.HasPrefix(word, "{") {
		var config struct {
			Servers map[string]json.RawMessage `json:"mcpServers"`
		}
		return json.Unmarshal([]byte(word), &config) == nil && config.Servers != nil
	}
	return strings.HasSuffix(word, ".json") && !strings.HasPrefix(word, "@") && !strings.ContainsAny(word, " \t\n")
}

func namesDir(p *process, word string) bool {
	info, err := os.Stat(p.path(word))
	return err == nil && info.IsDir()
}
