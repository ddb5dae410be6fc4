package layout

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
)

// traces are what a file would tell about the machine it was written on. They
// are put together here so that this file does not match itself.
var traces = []struct {
	what  string
	words []string // no trace without one of them; much faster to look for
	re    *regexp.Regexp
}{
	{
		"a path of one machine",
		[]string{"/wo" + "rk/", "/ro" + "ot/", "/tmp/"},
		regexp.MustCompile(`(?:^|[^\w.$}-])/(?:wo` + `rk/|ro` + `ot/|tmp/(?:peers|te` + `am|quality)\b)`),
	},
	{
		"the host of a package registry",
		[]string{"gol" + "ang.org", "npm" + "js", "yarn" + "pkg", "deb" + "ian.org"},
		regexp.MustCompile(`\b(?:proxy|sum)\.gol` + `ang\.org\b|\bregistry\.(?:npm` + `js|yarn` + `pkg)\b|\bdeb\.deb` + `ian\.org\b`),
	},
}

// machineTraces finds paths of one machine and hosts of package registries in
// any text file.
func machineTraces(tr *tree) []finding {
	var found []finding
	for _, txt := range tr.texts {
		for _, trace := range traces {
			hint := func(word string) bool { return bytes.Contains(txt.data, []byte(word)) }
			if !slices.ContainsFunc(trace.words, hint) {
				continue
			}
			for i, line := range bytes.Split(txt.data, []byte("\n")) {
				if trace.re.Match(line) {
					found = append(found, finding{txt.path, i + 1, "names " + trace.what})
				}
			}
		}
	}
	return found
}

// lockAddresses finds lock files that tie every machine to one registry.
func lockAddresses(tr *tree) []finding {
	var found []finding
	for _, txt := range tr.texts {
		if !strings.HasPrefix(path.Base(txt.path), "package-lock") {
			continue
		}
		for i, line := range bytes.Split(txt.data, []byte("\n")) {
			if bytes.Contains(line, []byte(`"resolved"`)) {
				found = append(found, finding{txt.path, i + 1, "records a download address"})
				break
			}
		}
	}
	return found
}
