package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A reader never sees half of a file, and after an error it sees the file before.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	refused := errors.New("refused")
	for _, tt := range []struct {
		data  string
		check func(*os.File) error
		want  string
		err   error
	}{
		{"one", nil, "one", nil},
		{"two", func(*os.File) error { return refused }, "one", refused},
		{"three", func(*os.File) error { return nil }, "three", nil},
	} {
		if err := Replace(path, []byte(tt.data), 0o600, tt.check); !errors.Is(err, tt.err) {
			t.Errorf("%s: got %v, want %v", tt.data, err, tt.err)
		}
		got, err := ReadRegular(path, 5)
		if err != nil || string(got) != tt.want {
			t.Errorf("after %s: got %q and %v, want %q", tt.data, got, err, tt.want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("got %v and %v, want the file alone", left, err)
	}
}

func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRegular(path, 3); err == nil || err.Error() != "it has more than the 3 bytes that are read" {
		t.Errorf("a long file: got %v", err)
	}
	if _, err := ReadRegular(dir, 3); err == nil || err.Error() != "it is a directory" {
		t.Errorf("a directory: got %v", err)
	}
	_, err := ReadRegular(path+"x", 3)
	if !errors.Is(err, fs.ErrNotExist) || Cause(err).Error() != "no such file or directory" && errors.Is(Cause(err), err) {
		t.Errorf("no file: got %v", err)
	}
}
