package claudecode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ErrNoSession reports that no stored session has the ID.
var ErrNoSession = errors.New("claude-code: no such session")

// Transcripts are the sessions that the CLI has stored: one file of JSON lines each, in the folder
// "projects" of its configuration. Reading them needs no CLI. Lines that cannot be read are left
// out and reported; the rest is returned. It is safe for concurrent use, and reads what is there at
// the moment: a session that runs may be ahead of it.
type Transcripts struct{ projects string }

// NewTranscripts returns the sessions of a CLI that runs with env laid over the process's
// environment, as [agent.Options.Env] is: those of CLAUDE_CONFIG_DIR, else of HOME/.claude.
func NewTranscripts(env map[string]string) (*Transcripts, error) {
	lookup := func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		return os.Getenv(name)
	}
	dir := lookup("CLAUDE_CONFIG_DIR")
	if dir == "" {
		home := lookup("HOME")
		if home == "" {
			var err error
			if home, err = os.UserHomeDir(); err != nil {
				return nil, fmt.Errorf("claude-code: %w", err)
			}
		}
		dir = filepath.Join(home, ".claude")
	}
	return &Transcripts{projects: filepath.Join(dir, "projects")}, nil
}

// A TranscriptProblem is a part of a transcript that could not be read.
type TranscriptProblem struct {
	// Path is the file, Line the line in it, from 1, blank ones not counted; 0 for the file as a whole or for a line whose
	// number is not known because the file's middle was not read.
	Path string
	Line int
	Err  error
}

// Error names the place and the cause.
func (p *TranscriptProblem) Error() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %v", p.Path, p.Err)
	}
	return fmt.Sprintf("%s:%d: %v", p.Path, p.Line, p.Err)
}

// Unwrap returns the cause.
func (p *TranscriptProblem) Unwrap() error { return p.Err }

// A SessionInfo describes a stored session.
type SessionInfo struct {
	ID string
	// Title is the title that was given to it, else the CLI's own for it, else its first input.
	Title string
	// FirstPrompt is the first input's text.
	FirstPrompt string
	// CustomTitle is the title that was given to it; empty if none was.
	CustomTitle string
	Tag         string
	// Dir is the session's directory, GitBranch its branch.
	Dir, GitBranch string
	// Entrypoint says who ran it: "cli" for a person at a terminal, "sdk-go" and others for programs.
	Entrypoint string
	// Created is the time of its first entry, Modified that of the file.
	Created, Modified time.Time
	Size              int64 // bytes
	Path              string
}

// A SessionQuery selects stored sessions. The zero value selects all.
type SessionQuery struct {
	// Dir selects the sessions of one directory. Empty means all directories.
	Dir string
	// Limit is how many are returned, after Offset have been left out. Zero means all.
	Limit, Offset int
}

// List returns stored sessions, the one modified last first, and what could not be read. Of a long
// transcript only the beginning and the end are read. No stored sessions at all are no error.
func (t *Transcripts) List(q SessionQuery) ([]SessionInfo, []*TranscriptProblem, error) {
	paths, problems, err := t.paths(q.Dir)
	if err != nil {
		return nil, problems, err
	}
	type found struct {
		path string
		info fs.FileInfo
	}
	var files []found
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			problems = append(problems, &TranscriptProblem{Path: path, Err: err})
			continue
		}
		files = append(files, found{path, info})
	}
	slices.SortFunc(files, func(a, b found) int {
		return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), cmp.Compare(a.path, b.path))
	})
	var out []SessionInfo
	skip := max(q.Offset, 0)
	for _, f := range files {
		if q.Limit > 0 && len(out) == q.Limit {
			break
		}
		info, bad, err := summarize(f.path, f.info)
		problems = append(problems, bad...)
		switch {
		case err != nil:
			problems = append(problems, &TranscriptProblem{Path: f.path, Err: err})
		case q.Dir != "" && info.Dir != "" && !sameDir(info.Dir, q.Dir):
			// Two directories can share a folder of transcripts: its name keeps letters and digits only.
		case skip > 0:
			skip--
		default:
			out = append(out, *info)
		}
	}
	return out, problems, nil
}

// Info describes one stored session. Its error matches [ErrNoSession] if there is none.
func (t *Transcripts) Info(id string) (*SessionInfo, []*TranscriptProblem, error) {
	path, err := t.find(id)
	if err != nil {
		return nil, nil, err
	}
	stat, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("claude-code: %w", err)
	}
	return summarize(path, stat)
}

// paths are the transcripts of a directory, or of all.
func (t *Transcripts) paths(dir string) (paths []string, problems []*TranscriptProblem, err error) {
	folders, err := os.ReadDir(t.projects)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("claude-code: %w", err)
	}
	for _, folder := range folders {
		if !folder.IsDir() || dir != "" && !inFolder(dir, folder.Name()) {
			continue
		}
		path := filepath.Join(t.projects, folder.Name())
		files, err := os.ReadDir(path)
		if err != nil {
			problems = append(problems, &TranscriptProblem{Path: path, Err: err})
			continue
		}
		for _, file := range files {
			id, ok := strings.CutSuffix(file.Name(), ".jsonl")
			if _, err := uuid.Parse(id); ok && err == nil && !file.IsDir() {
				paths = append(paths, filepath.Join(path, file.Name()))
			}
		}
	}
	return paths, problems, nil
}

// find returns the transcript of a session. The same session in two folders is one that moved: the
// one written last counts.
func (t *Transcripts) find(id string) (string, error) {
	if _, err := uuid.Parse(id); err != nil {
		return "", fmt.Errorf("claude-code: session %.60q: %w", id, err)
	}
	paths, err := filepath.Glob(filepath.Join(escapeGlob(t.projects), "*", id+".jsonl"))
	if err != nil {
		return "", fmt.Errorf("claude-code: %w", err)
	}
	var last string
	var at time.Time
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && (last == "" || info.ModTime().After(at)) {
			last, at = path, info.ModTime()
		}
	}
	if last == "" {
		return "", fmt.Errorf("%w: %s", ErrNoSession, id)
	}
	return last, nil
}

var globSpecial = regexp.MustCompile(`[*?\[\\]`)

func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // there is no escaping in patterns on Windows
	}
	return globSpecial.ReplaceAllString(path, `\$0`)
}

var notInFolder = regexp.MustCompile(`[^a-zA-Z0-9]`)

// longName is the length from which the CLI cuts a folder's name and adds a hash, which is not
// known here: such folders are told apart by what their transcripts say.
const longName = 200

// inFolder reports whether the CLI may keep the transcripts of dir in the folder.
func inFolder(dir, folder string) bool {
	for _, d := range aliases(dir) {
		name := notInFolder.ReplaceAllString(d, "-")
		if name == folder || len(name) > longName && strings.HasPrefix(folder, name[:longName]) {
			return true
		}
	}
	return false
}

// aliases are the absolute path of dir and the one with its links resolved.
func aliases(dir string) []string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return []string{dir}
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		return []string{abs, real}
	}
	return []string{abs}
}

func sameDir(a, b string) bool {
	bs := aliases(b)
	return slices.ContainsFunc(aliases(a), func(dir string) bool { return slices.Contains(bs, dir) })
}

// An entry is what this package reads of a line. A member in an unexpected form reads as absent.
type entry struct {
	Type, Subtype             string
	UUID, Parent, Logical     string
	Sidechain, Meta           bool
	Timestamp                 time.Time
	Dir, Branch, Entrypoint   string
	CustomTitle, Title, Prose string
	Tag                       *string
	Message                   json.RawMessage
}

// UnmarshalJSON reads a line.
func (e *entry) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for name, into := range map[string]any{
		"type": &e.Type, "subtype": &e.Subtype, "uuid": &e.UUID, "parentUuid": &e.Parent, "logicalParentUuid": &e.Logical,
		"isSidechain": &e.Sidechain, "isMeta": &e.Meta, "timestamp": &e.Timestamp, "cwd": &e.Dir, "gitBranch": &e.Branch,
		"entrypoint": &e.Entrypoint, "customTitle": &e.CustomTitle, "aiTitle": &e.Title, "summary": &e.Prose, "tag": &e.Tag,
		"message": &e.Message,
	} {
		if value, ok := all[name]; ok {
			_ = json.Unmarshal(value, into)
		}
	}
	switch {
	case e.Type == "":
		return errors.New("the entry has no type")
	case e.UUID == "" && slices.Contains([]string{"user", "assistant", "system"}, e.Type):
		return fmt.Errorf("the %s entry has no uuid", e.Type)
	}
	return nil
}
