package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tenon-sdk/tenon/internal/jsonl"
)

// A Problem is a part of a transcript that cannot be read.
type Problem struct {
	// Path is the file.
	Path string
	// Line is the line in the file, from 1, without blank lines. It is 0 for the file as a whole, and
	// for a line near the end of a file whose middle was not read.
	Line int
	Err  error
}

// Error returns the place and the cause.
func (p *Problem) Error() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %v", p.Path, p.Err)
	}
	return fmt.Sprintf("%s:%d: %v", p.Path, p.Line, p.Err)
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// An entry is a line of a transcript. A member in an unexpected form reads as absent.
type entry struct {
	Type        string          `json:"type"`
	UUID        string          `json:"uuid"`
	Parent      string          `json:"parentUuid"`
	Logical     string          `json:"logicalParentUuid"`
	Sidechain   bool            `json:"isSidechain"`
	Meta        bool            `json:"isMeta"`
	Time        any             `json:"timestamp"`
	Dir         string          `json:"cwd"`
	Branch      string          `json:"gitBranch"`
	Entrypoint  string          `json:"entrypoint"`
	CustomTitle string          `json:"customTitle"`
	Title       string          `json:"aiTitle"`
	Summary     string          `json:"summary"`
	Tag         *string         `json:"tag"`
	Message     json.RawMessage `json:"message"`

	line int
	raw  json.RawMessage
}

// decodeEntry decodes a line.
func decodeEntry(line []byte) (entry, error) {
	e := entry{raw: line}
	err := json.Unmarshal(line, &e)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !ok {
		return e, err
	}
	switch {
	case e.Type == "":
		return e, errors.New("the entry has no type")
	case e.UUID == "" && slices.Contains([]string{"user", "assistant", "system"}, e.Type):
		return e, fmt.Errorf("the %s entry has no uuid", e.Type)
	}
	return e, nil
}

// timestamp returns the time of the entry. It is zero if the entry has none.
func (e *entry) timestamp() time.Time {
	text, _ := e.Time.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// scan reads the lines of a transcript. If r does not begin with the file, numbered is false.
func scan(r io.Reader, path string, numbered bool) (all []entry, problems []*Problem) {
	lines := jsonl.NewReader(r, 0)
	for n := 1; ; n++ {
		line, err := lines.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				problems = append(problems, &Problem{Path: path, Err: err})
			}
			return all, problems
		}
		e, err := decodeEntry(line.Data)
		if line.Oversized() {
			err = errors.New("the line is too long")
		}
		if numbered {
			e.line = n
		}
		if err != nil {
			problems = append(problems, &Problem{path, e.line, err})
			continue
		}
		all = append(all, e)
	}
}
