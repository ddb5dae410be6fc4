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

// DefaultStoreBytes is the default size of a [Store].
const DefaultStoreBytes = 1 << 30

// A Store stores results that are too large for a model, and binary content, in files. Only their
// owner can read them (mode 0600, the directory 0700). It is safe for concurrent use.
type Store struct {
	limit int64
	own   bool // Close removes the directory

	mu     sync.Mutex // guards the rest
	dir    string
	root   *os.Root // nil until the first file
	used   int64
	mine   map[string]bool // names of the files that may be read
	closed bool
}

// NewStore returns a store in dir, which is created with the first file. An empty dir means a new
// temporary directory, which Close removes; other directories stay. limit is the total size of the
// files in bytes; zero means [DefaultStoreBytes]. The caller closes the store.
func NewStore(dir string, limit int64) *Store {
	if limit <= 0 {
		limit = DefaultStoreBytes
	}
	return &Store{dir: dir, own: dir == "", limit: limit, mine: map[string]bool{}}
}

var errStoreClosed = errors.New("the store of results is closed")

// open creates the directory. The caller holds the lock.
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

// StoreText stores the text of a tool's result and returns the path of its file.
func (s *Store) StoreText(server, tool, text string) (path string, err error) {
	return s.keep("mcp-"+toolname.Normalize(server)+"-"+toolname.Normalize(tool), ".txt", []byte(text))
}

// Save stores binary content and returns the path of its file. It is meant for [ConvertOptions].
func (s *Store) Save(name, mimeType string, data []byte) (path string, err error) {
	return s.keep(toolname.Normalize(name), extensionOf(mimeType), data)
}

// keep writes a file, and removes one that cannot be written completely.
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

// Adopt allows reading files that another store wrote to the directory, such as that of the resumed
// conversation. It returns the error of the first path that is no such file. A store reads no other
// files, since stores of other users may share the directory.
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

// savedTo matches the path of a stored result in the text that [Fit] puts in its place.
var savedTo = []*regexp.Regexp{
	regexp.MustCompile(`^Error: result \([\d,]+ characters across [\d,]+ lines\) exceeds maximum allowed tokens\. Output has been saved to ([^\n]+)\.\n`),
	regexp.MustCompile(`^<persisted-output>\nOutput too large \([\d.]+KB\)\. Full output saved to: ([^\n]+)\n`),
	regexp.MustCompile(`(?:^|\n)\[OUTPUT TRUNCATED - exceeded \d+ character limit\]\nThe whole text has been saved to ([^\n]+?)\. Read `),
}

// AdoptFrom adopts the file named in a text that [Fit] put in the place of a result of an earlier run.
// It reports whether the store's directory has the file. A store with a temporary directory has none.
func (s *Store) AdoptFrom(text string) bool {
	path := StoredPath(text)
	return path != "" && !s.own && s.Adopt(path) == nil
}

// StoredPath returns the path of the file named in a text that [Fit] put in the place of a result, and
// "" for other texts. A server can send the same text: only use it for texts of the host.
func StoredPath(text string) string {
	for _, re := range savedTo {
		if m := re.FindStringSubmatch(text); m != nil && storedName.MatchString(filepath.Base(m[1])) {
			return m[1]
		}
	}
	return ""
}

// storedName matches the names of StoreText's files, whose end is random.
var storedName = regexp.MustCompile(`^mcp-.*-\d+\.txt$`)

// name returns the file name of a path in the store's directory.
func (s *Store) name(path string) (string, error) {
	dir, name := filepath.Split(path)
	if s.root == nil || dir != "" && filepath.Clean(dir) != s.dir || name == "" {
		return "", fmt.Errorf("%s is no stored result", clip.Text(path, 300))
	}
	return name, nil
}

// Read returns a part of a stored text, with line numbers. The path is one of StoreText, Save or Adopt,
// or the name of its file. The error is written for a model, unless ctx ends, which stops a search.
// A pattern has at most 1,000 bytes and, with its repetitions expanded, 1,000 steps. A search stops
// after 2^28 steps with the matches found so far.
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
	f, err := s.root.Open(name) // never outside of the directory, whatever links there are
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("there is no stored result %s", clip.Text(path, 300))
		}
		return "", fmt.Errorf("the stored result %s cannot be read", clip.Text(path, 300))
	}
	defer f.Close()
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

// Close closes the store, and removes a temporary directory. It may be called more than once.
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

// extensions are those of the usual types. Those of the system differ between machines.
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
