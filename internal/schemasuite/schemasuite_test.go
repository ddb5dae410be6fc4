package schemasuite

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"
)

func TestVersionIsThePinnedOne(t *testing.T) {
	mod, err := os.ReadFile("suite/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`cuelang\.org/go (\S+)`).FindSubmatch(mod); m == nil || string(m[1]) != version {
		t.Errorf("suite/go.mod requires %q, this package looks for %s", m, version)
	}
}

// The library against itself: no case differs, whatever it gets wrong.
func TestLibraryAgainstItself(t *testing.T) { Run(t, itself) }

// itself goes by $schema alone, as a guard of ours does.
func itself(schema json.RawMessage) (func(json.RawMessage) error, error) {
	return newLibrary(dialects[0], true).guard(schema)
}

func TestDeclare(t *testing.T) {
	d := dialects[2]
	for _, tt := range []struct{ schema, want string }{
		{`true`, `true`},
		{`{}`, `{"$schema":"http://json-schema.org/draft-07/schema#"}`},
		{` {"type": "null"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","type": "null"}`},
		{`{"$schema":"x"}`, `{"$schema":"x"}`},
	} {
		if got := d.declare(json.RawMessage(tt.schema)); string(got) != tt.want {
			t.Errorf("declare(%s): got %s, want %s", tt.schema, got, tt.want)
		}
	}
}

// A guard that is wrong is found out, case by case.
func TestJudge(t *testing.T) {
	groups := []group{
		{file: "type", Description: "integer", Schema: json.RawMessage(`{"type":"integer"}`), Tests: []testCase{
			{"one", json.RawMessage(`1`), true},
			{"a word", json.RawMessage(`"one"`), false},
		}},
		{file: "format", Description: "ipv4", Schema: json.RawMessage(`{"format":"ipv4"}`), Tests: []testCase{
			{"only an annotation", json.RawMessage(`"x"`), true},
		}},
		{file: "refRemote", Description: "elsewhere", Schema: json.RawMessage(`{"$ref":"http://localhost:1234/integer.json"}`), Tests: []testCase{
			{"one", json.RawMessage(`1`), true},
		}},
	}
	lax := func(json.RawMessage) (func(json.RawMessage) error, error) {
		return func(json.RawMessage) error { return nil }, nil
	}
	deaf := func(json.RawMessage) (func(json.RawMessage) error, error) {
		return nil, errors.New("no")
	}
	for _, tt := range []struct {
		name              string
		guard             Guard
		ours, regressions int
	}{
		{"lax", lax, 2, 1},
		{"deaf", deaf, 1, 1},
		{"the library", itself, 2, 0},
	} {
		sum := judge(dialects[0], groups, tt.guard)
		if sum.cases != 4 || sum.remoteCases != 1 || len(sum.remote) != 1 || sum.library != 3 || sum.asserts != 2 || sum.formats != 1 {
			t.Errorf("%s: counts of the library and the suite: %+v", tt.name, sum)
		}
		if sum.ours != tt.ours || len(sum.regressions) != tt.regressions {
			t.Errorf("%s: got %d right and %d regressions, want %d and %d: %+v", tt.name, sum.ours, len(sum.regressions), tt.ours, tt.regressions, sum)
		}
	}
}
