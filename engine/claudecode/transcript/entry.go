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
	Type, UUID, Parent, Logical string
	Sidechain, Meta             bool
	Timestamp                   time.Time
	Dir, Branch, Entrypoint     string
	CustomTitle, Title, Summary string
	Tag                         *string
	Message                     json.RawMessage

	line int
	raw  json.RawMessage
}

// UnmarshalJSON reads a line.
func (e *entry) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for name, into := range map[string]any{
		"type": &e.Type, "uuid": &e.UUID, "parentUuid": &e.Parent, "logicalParentUuid": &e.Logical,
		"isSidechain": &e.Sidechain, "isMeta": &e.Meta, "timestamp": &e.Timestamp, "cwd": &e.Dir, "gitBranch": &e.Branch,
		"entrypoint": &e.Entrypoint, "customTitle": &e.CustomTitle, "aiTitle": &e.Title, "summary": &e.Summary, "tag": &e.Tag,
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
		e := entry{raw: line.Data}
		if numbered {
			e.line = n
		}
		if line.Oversized() {
			err = errors.New("the line is too long")
		} else {
			err = json.Unmarshal(e.raw, &e)
		}
		if err != nil {
			problems = append(problems, &Problem{path, e.line, err})
			continue
		}
		all = append(all, e)
	}
}
