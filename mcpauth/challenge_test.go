package mcpauth

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// Of several challenges the readable ones count, and of a challenge the readable parameters.
// fault C5
func TestReadableChallengesCount(t *testing.T) {
	want := challenge{metadataURL: "https://a.example/m", scopes: []string{"read", "write"}, err: "invalid_token"}
	const bearer = `Bearer resource_metadata="https://a.example/m", scope="read write", error="invalid_token"`
	for name, lines := range map[string][]string{
		"alone":                          {bearer},
		"another case":                   {strings.NewReplacer("Bearer", "bEARER", "scope", "SCOPE").Replace(bearer)},
		"after a token68":                {"Negotiate YII=, " + bearer},
		"before a token68":               {bearer + ", Negotiate YII="},
		"after a bare scheme":            {"Negotiate, NTLM, " + bearer},
		"with an empty realm":            {strings.Replace(bearer, "Bearer ", `Bearer realm="", `, 1)},
		"with an empty token":            {strings.Replace(bearer, "Bearer ", `Bearer realm=, `, 1)},
		"with a word that is no pair":    {strings.Replace(bearer, "scope", `nonsense"x, scope`, 1)},
		"after Basic":                    {`Basic realm="a, Bearer scope=x", charset="UTF-8", ` + bearer},
		"escapes in quotes":              {`Basic realm="a \" , Bearer scope=\"x\"", ` + bearer},
		"after an open quote, two lines": {`Basic realm="never closed, Bearer scope=x`, bearer},
		"after nonsense, two lines":      {`,,=,"",=x,"`, bearer},
		"commas and spaces":              {", ,, \t" + strings.ReplaceAll(bearer, ", ", "\t,, ,\t") + ",,"},
		"spaces around the equals sign":  {strings.ReplaceAll(bearer, "=", " = ")},
		"two Bearer challenges":          {`Bearer error="invalid_token"`, `Bearer scope="read write", Bearer resource_metadata=https://a.example/m, error=other`},
	} {
		if d := cmp.Diff(want, readChallenge(http.Header{"Www-Authenticate": lines}), cmp.AllowUnexported(challenge{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for _, line := range []string{"", "Bearer", `Basic realm="x", error="no"`, `error="no"`, `Bearer error="open`, `Bearer ="x"`, "Bearer \xff=\xfe", `DPoP scope="x"`} {
		if d := cmp.Diff(challenge{}, readChallenge(http.Header{"Www-Authenticate": {line}}), cmp.AllowUnexported(challenge{})); d != "" {
			t.Errorf("%q asks for something:\n%s", line, d)
		}
	}
}

// Each byte of a header is looked at once, whatever it is, and no more than a bound of them.
func TestHostileChallenges(t *testing.T) {
	for _, part := range []string{",", `"`, `="`, `=",`, `a="b",`, `\"`, `="\`, "Bearer a=b,", "Bearer,", "= ", " ", "a ", "\xff,"} {
		growth.Check(t, 500, func(n int) int {
			steps := 1
			for item := range listItems(strings.Repeat(part, n)) {
				scheme, param := splitItem(item)
				splitParam(param)
				steps += len(item) + len(scheme) + len(param) + 1
			}
			return steps + n
		})
		growth.AtMost(t, 8*maxChallengeBytes, []int{1 << 20, 4 << 20}, func(n int) int {
			h := http.Header{"Www-Authenticate": slices.Repeat([]string{strings.Repeat(part, n/len(part)/4)}, 4)}
			return growth.Bytes(func() { readChallenge(h) })
		})
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer realm="", resource_metadata="https://a.example/\"m", Negotiate YII=`)
	f.Fuzz(func(t *testing.T, line string) {
		total := 0
		for item := range listItems(line) {
			total += len(item)
			if item == "" || strings.Trim(item, " \t") != item {
				t.Errorf("item %q", item)
			}
		}
		if total > len(line) {
			t.Errorf("%d bytes in the items of %q", total, line)
		}
		if c := readChallenge(http.Header{"Www-Authenticate": {line}}, "secret"); strings.Contains(c.metadataURL+c.err+strings.Join(c.scopes, ""), "secret") {
			t.Errorf("%q: got %+v", line, c)
		}
	})
}
