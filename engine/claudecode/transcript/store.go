// Package transcript reads and edits the sessions that the Claude Code CLI has stored: one file of
// JSON lines for each session, in the folder "projects" of the CLI's configuration. It runs no CLI.
//
//	store, err := transcript.Open(nil)
//	sessions, problems, err := store.List(transcript.Query{Dir: "/srv/project"})
package transcript

import (
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

	"github.com/tenon-sdk/tenon/internal/file"
)

// ErrNotFound is the error for an ID that no stored session has.
var ErrNotFound = errors.New("claude-code: no such session")

// A Store holds stored sessions. Its methods leave out what cannot be read, report it as a
// [Problem] and return the rest. A Store is safe for concurrent use. A running session may be ahead
// of its file.
type Store struct{ projects string }

// Open returns the sessions of a CLI that runs with env in addition to the environment of this
// process. They are in the folder that CLAUDE_CONFIG_DIR names, or else in HOME/.claude.
func Open(env map[string]string) (*Store, error) {
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
				return nil, err
			}
		}
		dir = filepath.Join(home, ".claude")
	}
	return &Store{projects: filepath.Join(dir, "projects")}, nil
}

// folders returns the folders of transcripts: those that may belong to dir, or all if dir is empty.
func (s *Store) folders(dir string) ([]string, error) {
	entries, err := os.ReadDir(s.projects)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() && (dir == "" || mayHold(e.Name(), dir)) {
			folders = append(folders, filepath.Join(s.projects, e.Name()))
		}
	}
	return folders, nil
}

// find returns the path of a session's transcript. If a session that moved is in two folders, find
// returns the file that was written last.
func (s *Store) find(id string) (string, error) {
	if _, err := uuid.Parse(id); err != nil {
		return "", fmt.Errorf("claude-code: session %.60q: %w", id, err)
	}
	folders, err := s.folders("")
	if err != nil {
		return "", err
	}
	var last string
	var at time.Time
	for _, folder := range folders {
		path := filepath.Join(folder, id+".jsonl")
		if info, err := os.Stat(path); err == nil && (last == "" || info.ModTime().After(at)) {
			last, at = path, info.ModTime()
		}
	}
	if last == "" {
		return "", fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return last, nil
}

// folderOf returns the folder of what belongs to a session beside its transcript.
func folderOf(path string) string { return strings.TrimSuffix(path, ".jsonl") }

var notInFolder = regexp.MustCompile(`[^a-zA-Z0-9]`)

// longName is the length from which the CLI shortens a folder's name and appends a hash, which this
// package does not compute. The transcripts say which directory they belong to.
const longName = 200

// mayHold reports whether the CLI may keep the transcripts of dir in a folder.
func mayHold(folder, dir string) bool {
	for _, d := range aliases(dir) {
		name := notInFolder.ReplaceAllString(d, "-")
		if name == folder || len(name) > longName && strings.HasPrefix(folder, name[:longName]) {
			return true
		}
	}
	return false
}

// aliases returns the absolute path of dir, and the path with its symbolic links resolved.
func aliases(dir string) []string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return []string{dir}
	}
	return slices.Compact([]string{abs, file.Real(abs)})
}

func sameDir(a, b string) bool {
	bs := aliases(b)
	return slices.ContainsFunc(aliases(a), func(dir string) bool { return slices.Contains(bs, dir) })
}

// Rename gives a stored session a title. A running session has claudecode.Control.Rename for that.
func (s *Store) Rename(id, title string) error {
	if title = strings.TrimSpace(title); title == "" {
		return errors.New("claude-code: a session's title cannot be empty")
	}
	path, err := s.find(id)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	if err := appendEntry(path, map[string]any{"type": "custom-title", "customTitle": title, "sessionId": id, "timestamp": now}); err != nil {
		return err
	}
	if err := os.MkdirAll(folderOf(path), 0o700); err != nil {
		return err
	}
	note, err := json.Marshal(titleNote{Title: title, By: "host", At: now})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folderOf(path), titleFile), note, 0o600)
}

// Tag replaces the tag of a stored session. An empty tag removes it.
func (s *Store) Tag(id, tag string) error {
	path, err := s.find(id)
	if err != nil {
		return err
	}
	return appendEntry(path, map[string]any{"type": "tag", "tag": strings.TrimSpace(tag), "sessionId": id, "timestamp": time.Now().UTC()})
}

// Delete removes a stored session and what belongs to it, such as the transcripts of its subagents.
func (s *Store) Delete(id string) error {
	path, err := s.find(id)
	if err != nil {
		return err
	}
	// The folder goes first: if that fails, the session can still be found and deleted again.
	if err := os.RemoveAll(folderOf(path)); err != nil {
		return err
	}
	return os.Remove(path)
}

// appendEntry appends a line in one write, so that a CLI that writes at the same time cannot split
// it. If the last line of the file is incomplete, appendEntry ends that line first.
func appendEntry(path string, e map[string]any) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	last := []byte{'\n'}
	if stat.Size() > 0 {
		if _, err := f.ReadAt(last, stat.Size()-1); err != nil {
			return err
		}
	}
	line = append(line, '\n')
	if last[0] != '\n' {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Close()
}
