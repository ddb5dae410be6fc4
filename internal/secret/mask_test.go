package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// The one token that came up in use is masked as well as many are.
// fault F1
func TestOneLiveSecret(t *testing.T) {
	m := NewMasker(nil)
	m.Learn([]string{"computed-one"})
	if got := m.Hide("it is computed-one now"); got != "it is *** now" {
		t.Errorf("got %q", got)
	}
	for i := range maxLearned {
		m.Learn([]string{fmt.Sprintf("letmein-number-%d!", i)})
	}
	if got := m.Hide("computed-one letmein-number-0! letmein-number-63!"); got != "computed-one *** ***" {
		t.Errorf("after 64 more: %q", got)
	}
}

// A token is found when it is encoded, stands in something encoded, is cut, or has something in it.
// fault C6
func TestDisguisedSecrets(t *testing.T) {
	const token = "tok_live_8f3A9c1D2e77Qx"
	m := NewMasker(InNamed(map[string]string{"Authorization": "Bearer " + token}))
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, text := range map[string]string{
		"as it is":           token,
		"base64":             b64(token),
		"base64 of more":     b64("Authorization: Bearer " + token + "\n"),
		"base64, one before": b64("x" + token),
		"base64, two before": b64("xy" + token + "zzz"),
		"base64 for URLs":    base64.RawURLEncoding.EncodeToString([]byte(token)),
		"hexadecimal":        hex.EncodeToString([]byte(token)),
		"for a URL":          url.QueryEscape("Bearer " + token),
		"two halves":         "the first half is " + token[:11] + " and the second " + token[11:],
		"without its end":    token[:len(token)-3],
		"over two lines":     token[:9] + "\n  " + token[9:],
		"letter by letter":   strings.Join(strings.Split(token, ""), " "),
		"quoted pieces":      `"` + token[:5] + `", "` + token[5:10] + `", "` + token[10:] + `"`,
	} {
		got := m.Hide("it says " + text + " now")
		if !strings.Contains(got, Hidden) || !strings.HasPrefix(got, "it says ") || !strings.HasSuffix(got, " now") {
			t.Errorf("%s: %s", name, got)
		}
		rest := strings.NewReplacer(Hidden, "", "it says ", "", " now", "").Replace(got)
		for i := range len(token) - 5 {
			piece := token[i : i+6]
			if strings.Contains(rest, piece) || strings.Contains(rest, b64(piece)) || strings.Contains(rest, hex.EncodeToString([]byte(piece))) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	const plain = "no authorization: connecting to localhost:8080 failed at 2026-11-30T10:00:00Z, token live"
	if got := m.Hide(plain); got != plain {
		t.Errorf("an ordinary text became %s", got)
	}
}

// The work of masking grows with the text, also where the text is all but a token.
func TestMaskingGrows(t *testing.T) {
	token := strings.Repeat("aaaaaaa1", 8)
	f := newReplacer([]string{token, "tok_live_8f3A9c1D2e77Qx"})
	growth.Check(t, 4000, func(n int) int {
		text := strings.Repeat("aaaaaaa1aaaaaab ", n/16)
		return growth.Bytes(func() { f.replace(text) })
	})
}
