package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
)

func newGetCommand(p *process) *cobra.Command {
	var (
		scope  string
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "get NAME [flags]",
		Short: "Show a server's configuration entry",
		Long: `Show a server's configuration entry and the file that it stands in. Where several scopes have one, the first
shown is the one in force. The values of environment variables and headers are not shown, since they are often
secret, and what looks like a secret elsewhere, in arguments say, is ***; with --json the entry in force is
printed as it stands in the file.`,
		Args: wantArgs(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			all, faults, err := p.find(args[0], mcpconfig.Scope(scope))
			if err != nil {
				return err
			}
			for _, f := range faults {
				fmt.Fprintf(p.err, "tenon: %s\n", message(f))
			}
			switch {
			case len(all) == 0 && len(faults) > 0:
				return fmt.Errorf("no server %q in the files that can be read", args[0])
			case len(all) == 0:
				return p.noEntry(args[0])
			}
			if asJSON {
				return writeJSON(p, all[0].entry)
			}
			for _, f := range all {
				fmt.Fprintf(p.out, "%s (%s scope, %s)\n", visible(args[0]), f.scope, f.file)
				if err := writeEntry(p, f.entry); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.ValidArgsFunction = (&serverFlags{sources: sourceList{names: allSources()}}).complete(p)
	scopeFlag(c.Flags(), &scope, "", "look in one scope only")
	c.Flags().BoolVar(&asJSON, "json", false, "print the entry as JSON, secrets included")
	return c
}

// writeEntry prints the members of an entry, less what may be secret.
func writeEntry(p *process, entry json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(entry, &members); err != nil {
		return errors.New("the entry is no JSON object; --json shows it as it stands")
	}
	known := shownSecrets(members)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		var (
			text  string
			inner map[string]json.RawMessage
		)
		if (key == "env" || key == "headers") && json.Unmarshal(members[key], &inner) == nil {
			text = strings.Join(slices.Sorted(maps.Keys(inner)), ", ")
		} else {
			text = mcphost.MaskSecrets(known, plainJSON(members[key]))
		}
		var address string
		if key == "url" && json.Unmarshal(members[key], &address) == nil {
			text = mcphost.MaskSecrets(mcphost.HTTP{URL: literal(address)}, text)
		}
		if _, err := fmt.Fprintf(p.out, "  %s: %s\n", key, oneLine(text)); err != nil {
			return err
		}
	}
	return nil
}

// shownSecrets is a configuration that has all texts of an entry in its arguments, under the names that they go by,
// so that the host finds the secrets among them.
func shownSecrets(members map[string]json.RawMessage) mcphost.Stdio {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		var (
			words []string
			line  string
		)
		switch {
		case key == "args" && json.Unmarshal(members[key], &words) == nil:
		case (key == "command" || key == "headersHelper") && json.Unmarshal(members[key], &line) == nil:
			words = strings.Fields(line)
		default:
			words = namedTexts(key, members[key])
		}
		for _, w := range words {
			all = append(all, literal(w))
		}
		all = append(all, "-") // the next text does not belong to a flag at the end of these
	}
	return mcphost.Stdio{Args: all}
}

// secretPlaces are the places of an entry whose texts hold a secret and not a reference to a variable: env.NAME,
// headers.NAME, args[0], url.
func secretPlaces(entry json.RawMessage) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(entry, &members) != nil {
		return nil
	}
	known := shownSecrets(members)
	var places []string
	var visit func(place string, value json.RawMessage)
	visit = func(place string, value json.RawMessage) {
		var (
			text  string
			list  []json.RawMessage
			inner map[string]json.RawMessage
		)
		switch {
		case json.Unmarshal(value, &text) == nil:
			text = literal(text)
			hidden := mcphost.MaskSecrets(known, text)
			if place == "url" {
				hidden = mcphost.MaskSecrets(mcphost.HTTP{URL: text}, hidden)
			}
			if hidden != text {
				places = append(places, place)
			}
		case json.Unmarshal(value, &list) == nil:
			for i, v := range list {
				visit(fmt.Sprintf("%s[%d]", place, i), v)
			}
		case json.Unmarshal(value, &inner) == nil:
			for _, key := range slices.Sorted(maps.Keys(inner)) {
				visit(place+"."+key, inner[key])
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		visit(key, members[key])
	}
	return places
}

// namedTexts are the texts in a JSON value, as NAME=TEXT.
func namedTexts(name string, value json.RawMessage) []string {
	var (
		text    string
		list    []json.RawMessage
		members map[string]json.RawMessage
		all     []string
	)
	switch {
	case json.Unmarshal(value, &text) == nil:
		return []string{strings.Map(nameRune, name) + "=" + text}
	case json.Unmarshal(value, &list) == nil:
		for _, v := range list {
			all = append(all, namedTexts(name, v)...)
		}
	case json.Unmarshal(value, &members) == nil:
		for _, key := range slices.Sorted(maps.Keys(members)) {
			all = append(all, namedTexts(key, members[key])...)
		}
	}
	return all
}

// nameRune keeps a name from ending at a sign of its own.
func nameRune(r rune) rune {
	if strings.ContainsRune("= :/", r) {
		return '_'
	}
	return r
}

// innerReference is a reference to a variable that holds no other one, with its default.
var innerReference = regexp.MustCompile(`\$\{[^{}]*?(?::-([^{}]*))?\}`)

// literal is what of a text in a file is the text itself, and no reference to a variable: that is not secret, but
// a default is.
func literal(s string) string {
	for range 16 { // no deeper are references read
		inner := innerReference.ReplaceAllString(s, "$1")
		if inner == s {
			break
		}
		s = inner
	}
	return s
}
