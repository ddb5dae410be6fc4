package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tenon-sdk/tenon/agent"
)

// A store keeps each conversation in a file of JSON lines, so that it goes on after the program was
// started anew. A service would have a database in its place: all that it needs is to keep messages as
// JSON in their order. The zero value keeps nothing.
type store struct {
	dir string
}

func (s store) path(id string) string {
	sum := sha256.Sum256([]byte(id)) // an id comes from outside, and is no name of a file
	return filepath.Join(s.dir, hex.EncodeToString(sum[:])+".jsonl")
}

// load reads a conversation; none for one that is not there. A line that cannot be read, such as the
// last one of a program that was killed, is left out: the engine mends what is missing then.
func (s store) load(id string) ([]agent.Message, error) {
	if s.dir == "" {
		return nil, nil
	}
	f, err := os.Open(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("loading conversation: %w", err)
	}
	defer f.Close()
	var history []agent.Message
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if m, bad := agent.DecodeMessage(bytes.TrimSpace(line)); bad == nil {
			history = append(history, m)
		}
		if errors.Is(err, io.EOF) {
			return history, nil
		}
		if err != nil {
			return nil, fmt.Errorf("loading conversation: %w", err)
		}
	}
}

// keep adds a message to a conversation, if it is one that makes it up.
func (s store) keep(id string, m agent.Message) error {
	switch m.(type) {
	case *agent.Assistant, *agent.User:
	default:
		return nil
	}
	if s.dir == "" {
		return nil
	}
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("keeping message: %w", err)
	}
	f, err := os.OpenFile(s.path(id), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keeping message: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keeping message: %w", err)
	}
	return nil
}
