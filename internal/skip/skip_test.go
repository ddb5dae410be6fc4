package skip

import (
	"fmt"
	"testing"
)

// recorder is a test whose end is written down.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.end += "failed: " + fmt.Sprintf(format, args...)
}

func (r *recorder) Skipf(format string, args ...any) {
	if r.end == "" { // a real one does not come back from Fatalf
		r.end = "skipped: " + fmt.Sprintf(format, args...)
	}
}

// What is missing fails a test in CI and in make test, whatever it is; the reasons on the list never do.
// fault F22
func TestMissingFailsWhereItIsRequired(t *testing.T) {
	const skipped = "skipped: no node (CI=true or TENON_PEERS=require makes this an error)"
	for _, tt := range []struct{ ci, peers, want string }{
		{"", "", skipped},
		{"false", "", skipped},
		{"", "skip", skipped},
		{"true", "", "failed: no node"},
		{"", "require", "failed: no node"},
		{"true", "require", "failed: no node"},
	} {
		t.Setenv("CI", tt.ci)
		t.Setenv("TENON_PEERS", tt.peers)
		r := &recorder{TB: t}
		Missing(r, "no %s", "node")
		if r.end != tt.want {
			t.Errorf("CI=%q TENON_PEERS=%q: %s, want %s", tt.ci, tt.peers, r.end, tt.want)
		}
		r = &recorder{TB: t}
		For(r, Platform, "not on %s", "plan9")
		if want := "skipped: platform: not on plan9"; r.end != want {
			t.Errorf("CI=%q TENON_PEERS=%q: %s, want %s", tt.ci, tt.peers, r.end, want)
		}
	}
}
