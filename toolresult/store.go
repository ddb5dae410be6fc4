package toolresult

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/toolname"
)

// DefaultStoreBytes is how much a [Store] keeps unless it is told otherwise.
const DefaultStoreBytes = 1 << 30

// A Store keeps, in files, what is too large for a model, or nothing that
// a model reads: whole results and binary content. Its folder is made with the
// first file; files are readable for their owner only (0600, the folder 0700).
// It is safe for concurrent use.
type Store struct {
	limit int64
	own   bool // the folder is removed with Close

	mu     sync.Mutex // guards the rest
	dir    string
	root   *os.Root // nil until the first file
	used   int64
	mine   map[string]bool // names of the files that may be read
	closed bool
}

// NewStore makes a store in a folder, which is made when the first file
// is. An empty dir means a new folder among the system's temporary files, which
// Close removes; files in a folder of the caller's stay. limit is how many bytes
// are kept in all; zero means [DefaultStoreBytes]. The caller closes the store.
func NewStore(dir string, limit int64) *Store {
	if limit <= 0 {
		limit = DefaultStoreBytes
	}
	return &Store{dir: dir, own: dir == "", limit: limit, mine: map[string]bool{}}
}

// errStoreClosed reports a store that is closed.
var errStoreClosed = errors.New("the store of results is closed")

// open makes the folder. The lock is held.
func (s *Store) open() error {
	if s.closed {
		return errStoreClosed
	}
	if s.root != nil {
		return nil
	}
	dir, err := s.dir, error(nil)
	if s.own {
		dir, err = os.MkdirTemp("", "tenon-results-")
	} else {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		dir, err = filepath.Abs(dir) // and clean: TMPDIR may end in slashes
	}
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	s.dir, s.root = dir, root
	return nil
}

// StoreText keeps the text of a tool's result and returns the path of its file.
func (s *Store) StoreText(server, tool, text string) (path string, err error) {
	return s.keep("mcp-"+toolname.Normalize(server)+"-"+toolname.Normalize(tool), ".txt", []byte(text))
}

// Save keeps binary content and returns the path of its file. It is made for
// [ConvertOptions].Save.
func (s *Store) Save(name, mimeType string, data []byte) (path string, err error) {
	return s.keep(toolname.Normalize(name), extensionOf(mimeType), data)
}

// keep writes a file. What cannot be written whole is not left behind.
func (s *Store) keep(name, ext string, data []byte) (path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return "", err
	}
	if int64(len(data)) > s.limit-s.used {
		return "", fmt.Errorf("the store of results is full: it keeps %d bytes", s.limit)
	}
	f, err := os.CreateTemp(s.dir, clip.Bytes(name, 100)+"-*"+ext) // with mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	s.used += int64(len(data))
	s.mine[filepath.Base(f.Name())] = true
	return f.Name(), nil
}

// Adopt lets files of the store's folder be read that another store wrote there,
// such as that of the run whose conversation goes on. It returns the error of the
// first path that is none. A store reads the files that it wrote and those that it
// adopted, and no others: stores of other users may share the folder.
func (s *Store) Adopt(paths ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	for _, path := range paths {
		name, err := s.name(path)
		if err != nil {
			return err
		}
		if info, err := s.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("there is no stored result %s", clip.Text(path, 300))
		}
		s.mine[name] = true
	}
	return nil
}

// savedTo finds the path of a stored result in what [Fit] says in its place.
var savedTo = []*regexp.Regexp{
	regexp.MustCompile(`^Error: result \([\d,]+ characters across [\d,]+ lines\) exceeds maximum allowed tokens\. Output has been saved to ([^\n]+)\.\n`),
	regexp.MustCompile(`^<persisted-output>\nOutput too large \([\d.]+KB\)\. Full output saved to: ([^\n]+)\n`),
	regexp.MustCompile(`(?:^|\n)\[OUTPUT TRUNCATED - exceeded \d+ character limit\]\nThe whole text has been saved to ([^\n]+?)\. Read `),
}

// AdoptFrom adopts the file that a text names which [Fit] put in the place
// of a result, as the conversation of an earlier run has it. It reports whether
// there is such a file in the store's folder. A store with a folder of its own
// has none of an earlier run.
func (s *Store) AdoptFrom(text string) bool {
	path := StoredPath(text)
	return path != "" && !s.own && s.Adopt(path) == nil
}

// StoredPath is the path of the file that a text names which [Fit] put in
// the place of a result; empty if it is none. A server can say the same, and
// nothing but a tool's own result tells its words from the host's.
func StoredPath(text string) string {
	for _, re := range savedTo {
		if m := re.FindStringSubmatch(text); m != nil && storedName.MatchString(filepath.Base(m[1])) {
			return m[1]
		}
	}
	return ""
}

// storedName matches the names that StoreText gives to files, and whose end nobody can guess.
var storedName = regexp.MustCompile(`^mcp-.*-\d+\.txt$`)

// name is the name in the store's folder that a path leads to.
func (s *Store) name(path string) (string, error) {
	dir, name := filepath.Split(path)
	if s.root == nil || dir != "" && filepath.Clean(dir) != s.dir || name == "" {
		return "", fmt.Errorf("%s is no stored result", clip.Text(path, 300))
	}
	return name, nil
}

// Read returns a part of a stored text, with line numbers. The path is one that StoreText or Save
// returned, or the name of the file alone; only files that the store wrote or adopted can be read.
// The error is worded for a model, unless ctx ends, which stops a search. Searches are bounded: a
// pattern has at most 1,000 bytes and, with its repetitions written out, 1,000 steps, and a search
// stops after 2^28 steps of the pattern with the matches found so far.
func (s *Store) Read(ctx context.Context, path string, q Query) (string, error) {
	text, err := s.text(path)
	if err != nil {
		return "", err
	}
	text, err = read(ctx, text, q)
	return EscapeHostTags(text), err
}

func (s *Store) text(path string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errStoreClosed
	}
	name, err := s.name(path)
	if err != nil {
		return "", err
	}
	if !s.mine[name] {
		return "", fmt.Errorf("there is no stored result %s", clip.Text(path, 300))
	}
	f, err := s.root.Open(name) // never outside of the folder, whatever links there are
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("there is no stored result %s", clip.Text(path, 300))
		}
		return "", fmt.Errorf("the stored result %s cannot be read", clip.Text(path, 300))
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, s.limit+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("the stored result %s cannot be read", clip.Text(path, 300))
	case int64(len(data)) > s.limit:
		return "", fmt.Errorf("the stored result %s has grown since it was stored", clip.Text(path, 300))
	case !utf8.Valid(data):
		return "", fmt.Errorf("%s is binary (%d bytes): it cannot be read as text", clip.Text(path, 300), len(data))
	}
	return string(data), nil
}

// Close ends the store, and removes its files if their folder is its own. It may
// be called more than once.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.root == nil {
		return nil
	}
	err := s.root.Close()
	if s.own {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// extensions are those of the types that tools return most: what the system
// calls them differs from machine to machine.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/mp4": ".m4a", "video/mp4": ".mp4",
	"application/pdf": ".pdf", "application/json": ".json", "application/zip": ".zip", "application/gzip": ".gz",
	"text/plain": ".txt", "text/csv": ".csv", "text/html": ".html", "text/markdown": ".md",
}

func extensionOf(mimeType string) string {
	kind, _, err := mime.ParseMediaType(mimeType)
	if err != nil {
		kind = strings.ToLower(strings.TrimSpace(mimeType))
	}
	if ext := extensions[kind]; ext != "" {
		return ext
	}
	return ".bin"
}
