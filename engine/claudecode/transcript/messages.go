package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
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
