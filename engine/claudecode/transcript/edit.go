package transcript

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
