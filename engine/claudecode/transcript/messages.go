package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/jsonl"
)

// A Message is a message of a stored session.
type Message struct {
	// Message is an *agent.User, *agent.Assistant or *agent.System.
	Message agent.Message
	// UUID identifies the message. ParentUUID identifies the entry before it, which may be of a kind
	// that is not returned.
	UUID, ParentUUID string
	Time             time.Time
	// Raw is the line.
	Raw json.RawMessage
}

// A MessageQuery selects messages. The zero value selects all messages of the user and the model.
type MessageQuery struct {
	// Limit bounds the number of messages that are returned after Offset are left out. Zero means all.
	Limit, Offset int
	// System includes the system messages.
	System bool
}

// Messages returns the messages of a stored session in order. If the conversation was rewound or
// forked within its file, Messages returns the branch that was continued last.
func (s *Store) Messages(id string, q MessageQuery) ([]Message, []*Problem, error) {
	path, err := s.find(id)
	if err != nil {
		return nil, nil, err
	}
	return messages(path, q, false)
}

// Subagents returns the IDs of the subagents of a stored session, sorted.
func (s *Store) Subagents(id string) ([]string, error) {
	path, err := s.find(id)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(filepath.Join(folderOf(path), "subagents"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, f := range files {
		name, isAgent := strings.CutPrefix(f.Name(), "agent-")
		if name, ok := strings.CutSuffix(name, ".jsonl"); ok && isAgent {
			ids = append(ids, name)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// SubagentMessages returns the messages of a subagent of a stored session, as [Store.Messages] does.
func (s *Store) SubagentMessages(id, agentID string, q MessageQuery) ([]Message, []*Problem, error) {
	path, err := s.find(id)
	if err != nil {
		return nil, nil, err
	}
	if agentID == "" || agentID != filepath.Base(agentID) || strings.ContainsAny(agentID, `/\`) {
		return nil, nil, fmt.Errorf("claude-code: no subagent is called %.60q", agentID)
	}
	return messages(filepath.Join(folderOf(path), "subagents", "agent-"+agentID+".jsonl"), q, true)
}

func messages(path string, q MessageQuery, sidechain bool) ([]Message, []*Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	all, problems := scan(f, path, true)
	chain, broken := branch(all, path, sidechain)
	problems = append(problems, broken...)
	var out []Message
	skip := max(q.Offset, 0)
	for _, e := range chain {
		if e.Meta || e.Type != "user" && e.Type != "assistant" && (e.Type != "system" || !q.System) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		m, err := agent.DecodeMessage(e.raw)
		if u, unknown := m.(*agent.Unknown); err == nil && unknown {
			err = u.Err
		}
		if err != nil {
			problems = append(problems, &Problem{path, e.line, err})
			continue
		}
		out = append(out, Message{Message: m, UUID: e.UUID, ParentUUID: e.Parent, Time: e.timestamp(), Raw: e.raw})
		if q.Limit > 0 && len(out) == q.Limit {
			break
		}
	}
	return out, problems, nil
}

// branch returns the chain of entries that ends with the last entry, in order. If the parent of an
// entry is missing, the chain continues with the entry before it in the file.
func branch(all []entry, path string, sidechain bool) (chain []entry, problems []*Problem) {
	index := map[string]int{}
	last := -1
	before := make([]int, len(all)) // the entry of the same chain before each
	previous := -1
	for i, e := range all {
		before[i] = previous
		if e.UUID == "" || e.Sidechain != sidechain {
			continue
		}
		previous = i
		if _, ok := index[e.UUID]; !ok { // an entry that was written twice has its first place
			index[e.UUID] = i
		}
		switch e.Type {
		case "user", "assistant", "system", "attachment":
			last = i
		}
	}
	for i := last; i >= 0; {
		e := all[i]
		chain = append(chain, e)
		parent := e.Parent
		if parent == "" {
			parent = e.Logical
		}
		if parent == "" {
			break
		}
		next, ok := index[parent]
		if !ok || next >= i {
			problems = append(problems, &Problem{path, e.line, fmt.Errorf("the entry before, %.60q, is missing", parent)})
			next = before[i]
		}
		i = next
	}
	slices.Reverse(chain)
	return chain, problems
}

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
