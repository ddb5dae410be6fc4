package toolresult

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// D94: pains 34 and 35: a result of 20 MB is bounded for the model, kept whole in
// a file that only its owner reads, previewed, and read back in parts.
func TestTwentyMegabytes(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 20<<20; i++ {
		b.WriteString("row " + itoa(i) + " of a table that nobody can read at once, with an ü in it\n")
	}
	whole := strings.TrimSuffix(b.String(), "\n")
	store := NewStore("", 0)
	defer func() { _ = store.Close() }()
	path := ""
	blocks := Fit(t.Context(), Convert(t.Context(), "data.base", "dump all", &mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: whole}}}, nil), &FitOptions{
		ReadTool: "ReadStored",
		Store: func(text string) (string, error) {
			p, err := store.StoreText("data.base", "dump all", text)
			path = p
			return p, err
		},
	})
	if len(blocks) != 1 || len(blocks[0].Text) > 4<<10 || !strings.Contains(blocks[0].Text, path) || !strings.Contains(blocks[0].Text, "row 0 of a table") {
		t.Fatalf("got %d blocks, %.3000s", len(blocks), blocks[0].Text)
	}
	if !strings.HasPrefix(filepath.Base(path), "mcp-data_base-dump_all-") {
		t.Errorf("the file is %s", path)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && (st.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700) {
		t.Errorf("modes %v and %v", st.Mode(), dir.Mode())
	}
	lines := strings.Split(whole, "\n")
	for _, offset := range []int{1, 201, len(lines) / 2, len(lines) - 100} {
		part, err := store.Read(t.Context(), path, Query{Offset: offset})
		if err != nil || len(part) > 3*storedChars {
			t.Fatalf("%d bytes, %v", len(part), err)
		}
		var want strings.Builder
		for i := offset; i < min(offset+200, len(lines)+1); i++ {
			want.WriteString(itoa(i) + ": " + lines[i-1] + "\n")
		}
		if last := min(offset+199, len(lines)); last < len(lines) {
			want.WriteString("[" + itoa(len(lines)-last) + " more lines; go on with offset " + itoa(last+1) + "]\n")
		}
		if part != want.String() {
			t.Errorf("from %d on: got %.200s", offset, part)
		}
	}
	found, err := store.Read(t.Context(), filepath.Base(path), Query{Pattern: "row 29876[0-9] "})
	if err != nil || strings.Count(found, "\n") != 10 {
		t.Errorf("found %s, %v", found, err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

func TestResultStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	s := NewStore(dir, 100)
	if _, err := s.Read(t.Context(), "x", Query{}); err == nil {
		t.Error("an empty store has something to read")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is made before it is needed: %v", err)
	}
	img, err := s.Save("mcp__s__t-1", "image/png; q=1", []byte{0xff, 0})
	if err != nil || filepath.Ext(img) != ".png" || filepath.Dir(img) != dir {
		t.Fatalf("%s, %v", img, err)
	}
	odd, err := s.StoreText("../..", "/etc/"+strings.Repeat("long", 100), "text")
	if err != nil || filepath.Dir(odd) != dir {
		t.Fatalf("%s, %v", odd, err)
	}
	if got, err := s.Read(t.Context(), odd, Query{}); got != "1: text\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	outside := filepath.Join(filepath.Dir(dir), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	for _, path := range []string{img, outside, filepath.Join(dir, "link"), "link", "../secret", filepath.Join(dir, "..", "secret"), "none", "", dir, "."} {
		if got, err := s.Read(t.Context(), path, Query{}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is read: %q, %v", path, got, err)
		}
	}
	if _, err := s.StoreText("s", "t", strings.Repeat("x", 95)); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("beyond the limit: %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.StoreText("s", "t", "x"); err == nil {
		t.Error("a closed store keeps texts")
	}
	if _, err := os.Stat(odd); err != nil {
		t.Errorf("a file in the caller's folder is gone: %v", err)
	}
}

// The system's folder for temporary files may be spelt with slashes at its end.
// fault B13
func TestTemporaryFolderWithSlashes(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"//")
	s := NewStore("", 0)
	defer s.Close()
	path, err := s.StoreText("s", "t", "text")
	if err != nil {
		t.Fatal(err)
	}
	for _, spelt := range []string{path, filepath.Base(path), filepath.Dir(path) + "//" + filepath.Base(path)} {
		if got, err := s.Read(t.Context(), spelt, Query{}); err != nil || got != "1: text\n" {
			t.Errorf("%s: %q, %v", spelt, got, err)
		}
	}
}

// Stores that share a folder read their own files only, and those of an earlier run that they are told of.
// fault H11
func TestStoresInOneFolder(t *testing.T) {
	dir := t.TempDir()
	mine, other := NewStore(dir, 0), NewStore(dir, 0)
	defer mine.Close()
	defer other.Close()
	theirs, err := other.StoreText("s", "t", "theirs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := mine.StoreText("s", "t", "mine")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := mine.Read(t.Context(), own, Query{}); err != nil || got != "1: mine\n" {
		t.Errorf("its own: %q, %v", got, err)
	}
	for _, path := range []string{theirs, filepath.Base(theirs), filepath.Join(dir, "notes.txt")} {
		if got, err := mine.Read(t.Context(), path, Query{}); err == nil || err.Error() != "there is no stored result "+path {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if err := os.Symlink(theirs, filepath.Join(dir, "link.txt")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none.txt"), filepath.Join(dir, "..", "x"), filepath.Join(dir, "link.txt"), dir} {
		if err := mine.Adopt(path); err == nil {
			t.Errorf("%s is adopted", path)
		}
	}
	if err := mine.Adopt(theirs); err != nil {
		t.Fatal(err)
	}
	if got, err := mine.Read(t.Context(), theirs, Query{}); err != nil || got != "1: theirs\n" {
		t.Errorf("of the run before: %q, %v", got, err)
	}
}

// A store finds the files of an earlier run in what the model was told then, in each of its forms.
// fault H11
func TestAdoptFrom(t *testing.T) {
	dir := t.TempDir()
	image := Block{Type: "image", MIMEType: "image/png", Data: []byte{1}}
	for name, blocks := range map[string][]Block{
		"too heavy":    oneText(strings.Repeat("x ", 60_000)),
		"too long":     oneText(strings.Repeat("x", 60_000)),
		"with images":  {{Type: "text", Text: strings.Repeat("x", 600_000)}, image},
		"JSON":         oneText("[" + strings.Repeat("1,", 60_000) + "1]"),
		"small enough": oneText("Output has been saved to " + filepath.Join(dir, "x.txt")),
	} {
		before, after := NewStore(dir, 0), NewStore(dir, 0)
		var path string
		said, _ := joinBlocks(Fit(t.Context(), blocks, &FitOptions{ReadTool: "Read", Store: func(text string) (string, error) {
			p, err := before.StoreText("s", "t", text)
			path = p
			return p, err
		}}))
		if got := after.AdoptFrom(said); got != (path != "") {
			t.Errorf("%s: adopted %v", name, got)
		}
		if path != "" {
			if _, err := after.Read(t.Context(), path, Query{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if NewStore("", 0).AdoptFrom(said) || NewStore(t.TempDir(), 0).AdoptFrom(said) {
			t.Errorf("%s: a store with another folder adopts it", name)
		}
		before.Close()
		after.Close()
	}
}
