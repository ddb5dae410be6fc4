package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
)

// A Session describes a stored session.
type Session struct {
	ID string
	// Title is CustomTitle, or else the title that the CLI made, or else FirstPrompt.
	Title string
	// FirstPrompt is the text of the first input.
	FirstPrompt string
	// CustomTitle is the title that a user or a program gave. It may be empty.
	CustomTitle string
	Tag         string
	// Dir is the session's working directory, GitBranch the branch in it.
	Dir, GitBranch string
	// Entrypoint names the program that ran the session: "cli" for a terminal, "sdk-go" for this SDK.
	Entrypoint string
	// Created is the time of the first entry, Modified that of the file.
	Created, Modified time.Time
	Size              int64 // bytes
	Path              string
}

// A Query selects stored sessions. The zero value selects all.
type Query struct {
	// Dir selects the sessions of one directory. Empty means all directories.
	Dir string
	// Limit bounds the number of sessions that are returned after Offset are left out. Zero means all.
	Limit, Offset int
}

// A storedFile is a transcript that List may describe.
type storedFile struct {
	path string
	info fs.FileInfo
}

// List returns stored sessions, the last modified first. List reads only the beginning and the end
// of a long transcript. A missing configuration folder is not an error.
func (s *Store) List(q Query) ([]Session, []*Problem, error) {
	folders, err := s.folders(q.Dir)
	if err != nil {
		return nil, nil, err
	}
	files, problems := transcripts(folders)
	var out []Session
	skip := max(q.Offset, 0)
	for _, f := range files {
		if q.Limit > 0 && len(out) == q.Limit {
			break
		}
		session, bad, err := describe(f)
		problems = append(problems, bad...)
		switch {
		case err != nil:
			problems = append(problems, &Problem{Path: f.path, Err: err})
		case q.Dir != "" && session.Dir != "" && !sameDir(session.Dir, q.Dir):
			// A folder's name keeps letters and digits only, so two directories may share it.
		case skip > 0:
			skip--
		default:
			out = append(out, *session)
		}
	}
	return out, problems, nil
}

// transcripts returns the transcripts in folders, the last modified first.
func transcripts(folders []string) (files []storedFile, problems []*Problem) {
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			problems = append(problems, &Problem{Path: folder, Err: err})
			continue
		}
		for _, e := range entries {
			id, ok := strings.CutSuffix(e.Name(), ".jsonl")
			if _, err := uuid.Parse(id); !ok || err != nil || e.IsDir() {
				continue
			}
			path := filepath.Join(folder, e.Name())
			info, err := os.Stat(path)
			if err != nil {
				problems = append(problems, &Problem{Path: path, Err: err})
				continue
			}
			files = append(files, storedFile{path, info})
		}
	}
	slices.SortFunc(files, func(a, b storedFile) int {
		return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), cmp.Compare(a.path, b.path))
	})
	return files, problems
}

// Session describes one stored session. If there is none, the error matches [ErrNotFound].
func (s *Store) Session(id string) (*Session, []*Problem, error) {
	path, err := s.find(id)
	if err != nil {
		return nil, nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	return describe(storedFile{path, info})
}

// edge is how many bytes of a transcript's beginning and end describe reads.
const edge = 64 << 10

// describe describes a session by the beginning and the end of its transcript.
func describe(t storedFile) (*Session, []*Problem, error) {
	f, err := os.Open(t.path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	size := t.info.Size()
	ends := []io.Reader{f}
	if size > 2*edge {
		head, tail := make([]byte, edge), make([]byte, edge)
		for at, into := range map[int64][]byte{0: head, size - edge: tail} {
			if _, err := f.ReadAt(into, at); err != nil {
				return nil, nil, err
			}
		}
		// The cuts are within lines.
		head = head[:bytes.LastIndexByte(head, '\n')+1]
		tail = tail[bytes.IndexByte(tail, '\n')+1:]
		ends = []io.Reader{bytes.NewReader(head), bytes.NewReader(tail)}
	}
	session := &Session{ID: filepath.Base(folderOf(t.path)), Path: t.path, Size: size, Modified: t.info.ModTime()}
	var titles titles
	var problems []*Problem
	for i, r := range ends {
		all, bad := scan(r, t.path, i == 0)
		problems = append(problems, bad...)
		for _, e := range all {
			session.add(&e, &titles)
		}
	}
	titles.readNote(folderOf(t.path))
	session.CustomTitle = titles.custom
	session.Title = cmp.Or(titles.custom, titles.generated, session.FirstPrompt)
	return session, problems, nil
}

// titles are the titles of a session.
type titles struct {
	custom, generated string
	at                time.Time // when custom was set; zero if not known
}

// titleFile is the name of the file in a session's folder that has the custom title.
const titleFile = "custom-title.json"

// A titleNote is the content of that file.
type titleNote struct {
	Title string    `json:"customTitle"`
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
}

// readNote reads the title in a session's folder, unless the transcript has a later one.
func (t *titles) readNote(folder string) {
	data, err := os.ReadFile(filepath.Join(folder, titleFile))
	if err != nil {
		return // most sessions have none
	}
	var note titleNote
	if json.Unmarshal(data, &note) == nil && note.Title != "" && !t.at.After(note.At) {
		t.custom = note.Title
	}
}

// add adds what an entry says of its session.
func (s *Session) add(e *entry, t *titles) {
	if s.Created.IsZero() {
		s.Created = e.timestamp()
	}
	s.Dir, s.Entrypoint = cmp.Or(s.Dir, e.Dir), cmp.Or(s.Entrypoint, e.Entrypoint)
	s.GitBranch = cmp.Or(e.Branch, s.GitBranch)
	t.generated = cmp.Or(e.Summary, e.Title, t.generated)
	switch {
	case e.Type == "custom-title":
		t.custom, t.at = e.CustomTitle, e.timestamp()
	case e.Type == "tag" && e.Tag != nil:
		s.Tag = *e.Tag
	case e.Type == "user" && s.FirstPrompt == "" && !e.Meta && !e.Sidechain:
		s.FirstPrompt = promptText(e.Message)
	}
}

// promptText returns the text of an input. It is empty for the results of tools.
func promptText(message json.RawMessage) string {
	var m struct {
		Content agent.Content `json:"content"`
	}
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	return strings.TrimSpace(m.Content.Text())
}
