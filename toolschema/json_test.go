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
			_, q := ForModel(Tool{Server: "s", Name: "t", InputSchema: json.RawMessage(document)}, nil)
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
