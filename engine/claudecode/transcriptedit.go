package claudecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// titleFile is beside a transcript, in the session's folder.
const titleFile = "custom-title.json"

// titleNote is what the CLI keeps in it.
type titleNote struct {
	Title string    `json:"customTitle"`
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
}

// Rename gives a stored session a title. For one that runs, see [Control.Rename].
func (t *Transcripts) Rename(id, title string) error {
	if title = strings.TrimSpace(title); title == "" {
		return errors.New("claude-code: a session's title cannot be empty")
	}
	path, err := t.find(id)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	if err := appendEntry(path, map[string]any{"type": "custom-title", "customTitle": title, "sessionId": id, "timestamp": now}); err != nil {
		return err
	}
	dir := strings.TrimSuffix(path, ".jsonl")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	note, err := json.Marshal(titleNote{Title: title, By: "host", At: now})
	if err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, titleFile), note, 0o600); err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	return nil
}

// Tag gives a stored session a tag in place of the one that it has; empty takes it away.
func (t *Transcripts) Tag(id, tag string) error {
	path, err := t.find(id)
	if err != nil {
		return err
	}
	return appendEntry(path, map[string]any{"type": "tag", "tag": strings.TrimSpace(tag), "sessionId": id, "timestamp": time.Now().UTC()})
}

// Delete removes a stored session with its subagents and whatever else was stored with it.
func (t *Transcripts) Delete(id string) error {
	path, err := t.find(id)
	if err != nil {
		return err
	}
	// The folder first: should it fail, the session is still there to be deleted again.
	if err := os.RemoveAll(strings.TrimSuffix(path, ".jsonl")); err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	return nil
}

// appendEntry adds a line in one write, so that a CLI that writes at the same time does not come in
// between. A last line that was cut short is ended first.
func appendEntry(path string, e map[string]any) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	defer func() { _ = f.Close() }()
	stat, err := f.Stat()
	if err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	last := []byte{'\n'}
	if stat.Size() > 0 {
		if _, err := f.ReadAt(last, stat.Size()-1); err != nil {
			return fmt.Errorf("claude-code: %w", err)
		}
	}
	line = append(line, '\n')
	if last[0] != '\n' {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := f.Write(line); err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	return f.Close()
}
