package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The files that docs/architecture.md names exist.
func TestArchitectureNamesFiles(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile(`[\w/]+\.go\b`).FindAllString(string(text), -1)
	if len(files) < 20 {
		t.Errorf("the page names %d files, want those of a call on both engines", len(files))
	}
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Errorf("docs/architecture.md names %s: %v", name, err)
		}
	}
}
