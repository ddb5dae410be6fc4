package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// `make test` compiles everything, tests included, for Windows and macOS. The
// compiler is the check; this test keeps it from being dropped.
// fault E13
func TestOtherSystemsAreVetted(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(data), "\nvet:\n")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	for _, system := range []string{"windows", "darwin"} {
		if !regexp.MustCompile(`(?m)^\tGOOS=` + system + ` \$\(GO\) vet .*\./\.\.\.$`).MatchString(recipe) {
			t.Errorf("make vet does not compile for %s", system)
		}
	}
}
