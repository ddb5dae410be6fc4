package toolschema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is no JSON is said to be none, wherever in the document the slip is.
// fault F16
func TestMalformedJSONIsRefused(t *testing.T) {
	for _, value := range []string{
		`[1 2]`, `[1,]`, `[,1]`, `[,]`, `[1,,2]`, `[1`, `[1,`, `[`, `[1}`, `[1:2]`, `["a" "b"]`, `[[1]2]`, `[{}{}]`, `[nul]`, `[truefalse]`, `[1,"a]`, `[01]`, `[1.]`, `[-]`, `[+1]`, `[.5]`, `[1e]`, `["\x"]`, `["` + "\n" + `"]`,
		`{"a" 1}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1`, `{"a":`, `{"a"`, `{"a":1]`, `{1:2}`, `{"a":1,"b"}`,
		`]`, `}`, `1 2`, `nul`, `"`, `'a'`,
	} {
		if json.Valid([]byte(value)) {
			t.Fatalf("%s is JSON", value)
		}
		for _, document := range []string{value, `{"type":"object","default":` + value + `}`, `{"type":"object","enum":[{},[` + value + `]]}`} {
			if _, _, err := parseJSON([]byte(document), 64); err != errSyntax { //nolint:errorlint // this very one
				t.Errorf("%s: got %v, want %v", document, err, errSyntax)
			}
			_, q := ForModel(t.Context(), Tool{Server: "s", Name: "t", InputSchema: json.RawMessage(document)}, nil)
			if q == nil || !strings.Contains(q.Error(), errSyntax.Error()) {
				t.Errorf("%s: got %v, want a quarantine", document, q)
			}
		}
	}
}

// What the parser reads is what encoding/json reads.
// fault F16
func TestParserReadsWhatIsJSON(t *testing.T) {
	for _, document := range []string{
		`[]`, `[ ]`, `[1]`, `[1,2 , 3]`, `[[],[[]],{}]`, `{"a":[{"b":[]}],"c":{}}`, `{"a":1,"a":2}`, `"a\"b\\c\u00e9"`, ` [ true , false , null ] `, `-1.5e+10`, `0`,
	} {
		v, p, err := parseJSON([]byte(document), 64)
		if err != nil || p.cut != 0 || p.mangled {
			t.Errorf("%s: got %v, %d cut", document, err, p.cut)
			continue
		}
		var want, got any
		if err := json.Unmarshal([]byte(document), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(appendJSON(nil, v), &got); err != nil {
			t.Errorf("%s: %v", document, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", document, d)
		}
	}
}

// A caller's limits hold, from the least that is allowed on.
func TestLimitsOfTheCaller(t *testing.T) {
	long := strings.Repeat("a long sentence. ", 40)
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","description":"` + long + `"}}}`)
	for _, tt := range []struct {
		o                    *Options
		name, text, maxBytes int // what is left at most
	}{
		{nil, DefaultMaxName, len([]rune(long)), len(schema)},
		{&Options{MaxName: 20}, 20, len([]rune(long)), len(schema)},
		{&Options{MaxName: 1}, 16, len([]rune(long)), len(schema)},
		{&Options{MaxDescription: 50}, DefaultMaxName, 100, len(schema)},
		{&Options{MaxSchema: len(schema)}, DefaultMaxName, len([]rune(long)), len(schema)},
	} {
		m, q := ForModel(t.Context(), Tool{Server: "server", Name: strings.Repeat("n", 100), Description: long, InputSchema: schema}, tt.o)
		if q != nil {
			t.Fatal(q)
		}
		if len(m.Name) != tt.name || len([]rune(m.Description)) > tt.text || len(m.InputSchema) > tt.maxBytes {
			t.Errorf("%+v: a name of %d bytes, a description of %d characters, a schema of %d bytes", tt.o, len(m.Name), len([]rune(m.Description)), len(m.InputSchema))
		}
		if tt.text == len([]rune(long)) && m.Description != long && strings.TrimSpace(long) != m.Description {
			t.Errorf("%+v: the description is cut to %q", tt.o, m.Description)
		}
	}
	_, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: schema}, &Options{MaxSchema: 300})
	const want = `tool "t" is left out: its schema is larger than 300 bytes, also when what is nested in it is cut`
	if q == nil || q.Error() != want {
		t.Errorf("a schema above the limit: got %v, want %s", q, want)
	}
}
