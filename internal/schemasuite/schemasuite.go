// Package schemasuite runs the official JSON-Schema-Test-Suite, required part,
// of the three dialects that a tool may use, through a validator of ours and
// through the schema library itself, side by side.
//
// It is for tests only:
//
//	func TestSchemaSuite(t *testing.T) {
//		schemasuite.Run(t, func(schema json.RawMessage) (func(json.RawMessage) error, error) {
//			s, err := compile(schema)
//			if err != nil {
//				return nil, err
//			}
//			return s.validate, nil
//		})
//	}
//
// The suite is data that the module in suite/ pins; `make suite` puts it into
// the module cache. Where it is missing the test is skipped with the reason,
// unless CI=true or TENON_PEERS=require is set, as `make test` does: then it fails.
package schemasuite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/skip"
)

// A Guard makes a validator of a schema. Its error, and the validator's, mean
// that the schema or the value is refused.
type Guard func(schema json.RawMessage) (validate func(value json.RawMessage) error, err error)

// Run holds guard against the suite and logs the counts for each dialect next
// to the library's. It fails for each case that guard gets wrong and the
// library, with format assertions on, gets right. Cases that need a document
// from elsewhere are counted and not judged: guard has to refuse to load it,
// the library does so here because nothing is there to be loaded.
func Run(t *testing.T, guard Guard) {
	t.Helper()
	dir, err := find()
	if err != nil {
		skip.Missing(t, "schemasuite: %v", err)
	}
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			groups, err := load(dir, d)
			if err != nil {
				t.Fatal(err)
			}
			sum := judge(d, groups, guard)
			t.Log(sum)
			for _, place := range sum.regressions {
				t.Error(place)
			}
		})
	}
}

// A summary is what came of one dialect.
type summary struct {
	dialect                string
	cases                  int
	ours, library, asserts int      // right verdicts; asserts: the library's with format assertions on
	formats                int      // cases that say a format is no assertion, which ours is
	remote                 []string // groups that need a document from elsewhere
	remoteCases            int
	regressions            []string // cases that ours gets wrong and the library right
	shared                 []string // cases that both get wrong, formats apart
}

func (s summary) String() string {
	var b strings.Builder
	judged := s.cases - s.remoteCases
	fmt.Fprintf(&b, "%s: %d cases; %d judged: ours %d right, the library %d (%d as it is by default)", s.dialect, s.cases, judged, s.ours, s.asserts, s.library)
	fmt.Fprintf(&b, "; by design: %d cases in %d groups need a document from elsewhere, %d take a format for no assertion", s.remoteCases, len(s.remote), s.formats)
	fmt.Fprintf(&b, "; wrong here and not there: %d", len(s.regressions))
	for _, name := range s.remote {
		fmt.Fprintf(&b, "\n  from elsewhere: %s", name)
	}
	for _, name := range s.shared {
		fmt.Fprintf(&b, "\n  wrong in both: %s", name)
	}
	return b.String()
}

// judge runs every group through guard and the library.
func judge(d dialect, groups []group, guard Guard) summary {
	sum := summary{dialect: d.name}
	for _, g := range groups {
		sum.cases += len(g.Tests)
		plain, asserting := newLibrary(d, false), newLibrary(d, true)
		byDefault := verdicts(g, g.Schema, plain.guard)
		theirs := verdicts(g, g.Schema, asserting.guard)
		if plain.asked {
			sum.remote = append(sum.remote, g.name())
			sum.remoteCases += len(g.Tests)
			continue
		}
		ours := verdicts(g, d.declare(g.Schema), guard)
		for i, c := range g.Tests {
			sum.count(g, c, outcome{ours: ours[i], theirs: theirs[i], byDefault: byDefault[i]})
		}
	}
	return sum
}

// An outcome holds what each side said of a case; nil means valid.
type outcome struct{ ours, theirs, byDefault error }

func (s *summary) count(g group, c testCase, o outcome) {
	right := func(verdict error) bool { return (verdict == nil) == c.Valid }
	if right(o.ours) {
		s.ours++
	}
	if right(o.theirs) {
		s.asserts++
	}
	if right(o.byDefault) {
		s.library++
	}
	place := fmt.Sprintf("%s / %s: valid is %v", g.name(), c.Description, c.Valid)
	switch {
	case right(o.theirs) && !right(o.ours):
		s.regressions = append(s.regressions, fmt.Sprintf("%s; ours said %v; the schema is %s, the value %s", place, o.ours, g.Schema, c.Data))
	case right(o.byDefault) && !right(o.theirs):
		s.formats++
	case !right(o.theirs) && !right(o.ours):
		s.shared = append(s.shared, place)
	}
}

// verdicts are what a guard says of each case. A schema that is refused refuses
// every value.
func verdicts(g group, schema json.RawMessage, guard Guard) []error {
	out := make([]error, len(g.Tests))
	validate, err := guard(schema)
	for i, c := range g.Tests {
		if err != nil {
			out[i] = fmt.Errorf("schema refused: %w", err)
			continue
		}
		out[i] = validate(c.Data)
	}
	return out
}
