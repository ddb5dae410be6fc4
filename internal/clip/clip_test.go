package clip

import "testing"

func TestText(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "longe…"},
		{"aüb", 2, "a…"},
		{"a\xffb", 9, "a\uFFFDb"},
		{"ü", 0, "…"},
	} {
		if got := Text(tt.s, tt.n); got != tt.want {
			t.Errorf("Text(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}
