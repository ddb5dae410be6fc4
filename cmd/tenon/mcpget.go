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
			return p.get(args[0], mcpconfig.Scope(scope), asJSON)
		},
	}
	c.ValidArgsFunction = newServerFlags().complete(p)
	scopeFlag(c.Flags(), &scope, "", "look in one scope only")
	c.Flags().BoolVar(&asJSON, "json", false, "print the entry as JSON, secrets included")
	return c
}

func (p *process) get(name string, scope mcpconfig.Scope, asJSON bool) error {
	all, faults, err := p.find(name, scope)
	if err != nil {
		return err
	}
	for _, f := range faults {
		fmt.Fprintf(p.err, "tenon: %s\n", message(f))
	}
	switch {
	case len(all) == 0 && len(faults) > 0:
		return fmt.Errorf("no server %q in the files that can be read", name)
	case len(all) == 0:
		return p.noEntry(name)
	case asJSON:
		return writeJSON(p, all[0].entry)
	}
	for _, f := range all {
		fmt.Fprintf(p.out, "%s (%s scope, %s)\n", visible(name), f.scope, f.file)
		if err := writeEntry(p, f.entry); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry prints the members of an entry without what may be secret.
func writeEntry(p *process, entry json.RawMessage) error {
	members := membersOf(entry)
	if members == nil {
		return errors.New("the entry is no JSON object; --json shows it as it stands")
	}
	known := shownSecrets(members)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		text := mcphost.MaskSecrets(known, plainJSON(members[key]))
		inner := membersOf(members[key])
		var address string
		switch {
		case (key == "env" || key == "headers") && inner != nil:
			text = strings.Join(slices.Sorted(maps.Keys(inner)), ", ")
		case key == "url" && json.Unmarshal(members[key], &address) == nil:
			text = mcphost.MaskSecrets(mcphost.HTTP{URL: literal(address)}, text)
		}
		if _, err := fmt.Fprintf(p.out, "  %s: %s\n", key, oneLine(text)); err != nil {
			return err
		}
	}
	return nil
}

// shownSecrets returns a configuration with all texts of an entry as arguments, under their names,
// so that the host finds the secrets among them.
func shownSecrets(members map[string]json.RawMessage) mcphost.Stdio {
	var all []string
	add := func(text string) { all = append(all, literal(text)) }
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
			eachText(key, key, members[key], func(_, name, text string) {
				// A name with one of these would end there.
				add(strings.NewReplacer("=", "_", " ", "_", ":", "_", "/", "_").Replace(name) + "=" + text)
			})
		}
		for _, w := range words {
			add(w)
		}
		add("-") // the next text does not belong to a flag at the end of these
	}
	return mcphost.Stdio{Args: all}
}

// secretPlaces returns the places of an entry whose texts have a secret, and not a reference to a
// variable: env.NAME, headers.NAME, args[0], url.
func secretPlaces(entry json.RawMessage) []string {
	members := membersOf(entry)
	known := shownSecrets(members)
	var places []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		eachText(key, key, members[key], func(place, _, text string) {
			text = literal(text)
			hidden := mcphost.MaskSecrets(known, text)
			if place == "url" {
				hidden = mcphost.MaskSecrets(mcphost.HTTP{URL: text}, hidden)
			}
			if hidden != text {
				places = append(places, place)
			}
		})
	}
	return places
}

// eachText calls visit for each string in a JSON value, with its place and the key that it is under.
func eachText(place, key string, value json.RawMessage, visit func(place, key, text string)) {
	var (
		text string
		list []json.RawMessage
	)
	switch {
	case json.Unmarshal(value, &text) == nil:
		visit(place, key, text)
	case json.Unmarshal(value, &list) == nil:
		for i, v := range list {
			eachText(fmt.Sprintf("%s[%d]", place, i), key, v, visit)
		}
	default:
		members := membersOf(value)
		for _, k := range slices.Sorted(maps.Keys(members)) {
			eachText(place+"."+k, k, members[k], visit)
		}
	}
}

// innerReference matches a reference to a variable that contains no other one, with its default.
var innerReference = regexp.MustCompile(`\$\{[^{}]*?(?::-([^{}]*))?\}`)

// literal returns a text of a file without its references to variables. Their defaults stay, since
// they may be secret.
func literal(s string) string {
	for range 16 { // the deepest references that are read
		s = innerReference.ReplaceAllString(s, "$1")
	}
	return s
}
