package claudecode

import (
	"bytes"
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

// edge is how much of a transcript's beginning and end is read to describe it.
const edge = 64 << 10

// A StoredMessage is a message of a stored session.
type StoredMessage struct {
	// Message is an *agent.User, *agent.Assistant or *agent.System.
	Message agent.Message
	// UUID identifies it, ParentUUID the one before it; the latter may be of a kind that is not returned.
	UUID, ParentUUID string
	Time             time.Time
	// Raw is the line.
	Raw json.RawMessage
}

// A MessageQuery selects messages of a stored session. The zero value selects all that were said.
type MessageQuery struct {
	// Limit is how many are returned, after Offset have been left out. Zero means all.
	Limit, Offset int
	// System adds the system messages.
	System bool
}

// Messages returns what was said in a stored session, in order, and what could not be read. Where
// the conversation was rewound or forked within its file, it is the branch that goes on.
func (t *Transcripts) Messages(id string, q MessageQuery) ([]StoredMessage, []*TranscriptProblem, error) {
	path, err := t.find(id)
	if err != nil {
		return nil, nil, err
	}
	return messages(path, q, false)
}

// Subagents returns the IDs of the subagents of a stored session, sorted.
func (t *Transcripts) Subagents(id string) ([]string, error) {
	path, err := t.find(id)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(subagents(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("claude-code: %w", err)
	}
	var ids []string
	for _, f := range files {
		name, ok := strings.CutPrefix(f.Name(), "agent-")
		if name, is := strings.CutSuffix(name, ".jsonl"); ok && is {
			ids = append(ids, name)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// SubagentMessages is [Transcripts.Messages] for a subagent of a session.
func (t *Transcripts) SubagentMessages(id, agentID string, q MessageQuery) ([]StoredMessage, []*TranscriptProblem, error) {
	path, err := t.find(id)
	if err != nil {
		return nil, nil, err
	}
	if agentID == "" || agentID != filepath.Base(agentID) || strings.ContainsAny(agentID, `/\`) {
		return nil, nil, fmt.Errorf("claude-code: no subagent is called %.60q", agentID)
	}
	return messages(filepath.Join(subagents(path), "agent-"+agentID+".jsonl"), q, true)
}

func subagents(path string) string {
	return filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents")
}

// A line of a transcript.
type stored struct {
	entry
	line int
	raw  json.RawMessage
}

// scan reads lines. What is no JSON object of the right form is a problem.
func scan(r io.Reader, path string, numbered bool) (all []stored, problems []*TranscriptProblem) {
	lines := jsonl.NewReader(r, 0)
	for n := 1; ; n++ {
		line, err := lines.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				problems = append(problems, &TranscriptProblem{Path: path, Err: err})
			}
			return all, problems
		}
		at := n
		if !numbered {
			at = 0
		}
		if line.Oversized() {
			problems = append(problems, &TranscriptProblem{path, at, errors.New("the line is too long")})
			continue
		}
		s := stored{line: at, raw: line.Data}
		if err := json.Unmarshal(s.raw, &s.entry); err != nil {
			problems = append(problems, &TranscriptProblem{path, at, err})
			continue
		}
		all = append(all, s)
	}
}

func messages(path string, q MessageQuery, sidechain bool) ([]StoredMessage, []*TranscriptProblem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("claude-code: %w", err)
	}
	defer func() { _ = f.Close() }()
	all, problems := scan(f, path, true)
	chain, broken := branch(all, path, sidechain)
	problems = append(problems, broken...)
	var out []StoredMessage
	skip := max(q.Offset, 0)
	for _, s := range chain {
		if s.Meta || s.Type != "user" && s.Type != "assistant" && (s.Type != "system" || !q.System) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		m, err := agent.DecodeMessage(s.raw)
		if u, unknown := m.(*agent.Unknown); err == nil && unknown {
			err = u.Err
		}
		if err != nil {
			problems = append(problems, &TranscriptProblem{path, s.line, err})
			continue
		}
		out = append(out, StoredMessage{Message: m, UUID: s.UUID, ParentUUID: s.Parent, Time: s.Timestamp, Raw: s.raw})
		if q.Limit > 0 && len(out) == q.Limit {
			break
		}
	}
	return out, problems, nil
}

// branch is the chain of entries that ends with the last one, in order. Where a link is missing, it
// goes on with the entry before in the file.
func branch(all []stored, path string, sidechain bool) (chain []stored, problems []*TranscriptProblem) {
	index := map[string]int{}
	last := -1
	for i, s := range all {
		if s.UUID == "" || s.Sidechain != sidechain {
			continue
		}
		if _, ok := index[s.UUID]; !ok { // an entry written twice stays where it was first
			index[s.UUID] = i
		}
		switch s.Type {
		case "user", "assistant", "system", "attachment":
			last = i
		}
	}
	for i := last; i >= 0; {
		s := all[i]
		chain = append(chain, s)
		parent := s.Parent
		if parent == "" {
			parent = s.Logical
		}
		if parent == "" {
			break
		}
		next, ok := index[parent]
		if !ok || next >= i {
			problems = append(problems, &TranscriptProblem{path, s.line, fmt.Errorf("the entry before, %.60q, is missing", parent)})
			next = before(all, i, sidechain)
		}
		i = next
	}
	slices.Reverse(chain)
	return chain, problems
}

// before returns the place of the entry before the one at i; -1 if there is none.
func before(all []stored, i int, sidechain bool) int {
	for i--; i >= 0; i-- {
		if all[i].UUID != "" && all[i].Sidechain == sidechain {
			return i
		}
	}
	return -1
}

// summarize describes a transcript by its beginning and end.
func summarize(path string, stat fs.FileInfo) (*SessionInfo, []*TranscriptProblem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("claude-code: %w", err)
	}
	defer func() { _ = f.Close() }()
	info := &SessionInfo{
		ID: strings.TrimSuffix(filepath.Base(path), ".jsonl"), Path: path, Size: stat.Size(), Modified: stat.ModTime(),
	}
	ends := []io.Reader{f}
	if stat.Size() > 2*edge {
		head, err := whole(io.NewSectionReader(f, 0, edge), false, true)
		if err != nil {
			return nil, nil, fmt.Errorf("claude-code: %w", err)
		}
		tail, err := whole(io.NewSectionReader(f, stat.Size()-edge, edge), true, false)
		if err != nil {
			return nil, nil, fmt.Errorf("claude-code: %w", err)
		}
		ends = []io.Reader{head, tail}
	}
	var problems []*TranscriptProblem
	var titles titles
	for i, r := range ends {
		all, bad := scan(r, path, i == 0)
		problems = append(problems, bad...)
		for _, s := range all {
			info.take(&s.entry, &titles)
		}
	}
	titles.sidecar(filepath.Join(strings.TrimSuffix(path, ".jsonl"), titleFile))
	info.CustomTitle = titles.custom
	for _, title := range []string{titles.custom, titles.own, info.FirstPrompt} {
		if info.Title == "" {
			info.Title = title
		}
	}
	return info, problems, nil
}

// whole reads r without the part of a line at its beginning or its end.
func whole(r io.Reader, cutFirst, cutLast bool) (io.Reader, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if i := bytes.IndexByte(data, '\n'); cutFirst {
		data = data[i+1:]
	}
	if i := bytes.LastIndexByte(data, '\n'); cutLast {
		data = data[:i+1]
	}
	return bytes.NewReader(data), nil
}

// titles are the names that a transcript gives its session.
type titles struct {
	custom, own string
	at          time.Time // of custom, as far as it is known
}

// sidecar takes the title from the file that the CLI keeps beside the transcript, unless a later
// one stands in the transcript.
func (t *titles) sidecar(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return // most sessions have none
	}
	var s titleNote
	if json.Unmarshal(data, &s) == nil && s.Title != "" && !t.at.After(s.At) {
		t.custom = s.Title
	}
}

// take adds what an entry says of its session.
func (info *SessionInfo) take(e *entry, t *titles) {
	if info.Created.IsZero() {
		info.Created = e.Timestamp
	}
	for _, set := range []struct {
		into  *string
		value string
		last  bool
	}{
		{&info.Dir, e.Dir, false},
		{&info.Entrypoint, e.Entrypoint, false},
		{&info.GitBranch, e.Branch, true},
		{&t.own, e.Title, true},
		{&t.own, e.Prose, true},
	} {
		if set.value != "" && (set.last || *set.into == "") {
			*set.into = set.value
		}
	}
	switch {
	case e.Type == "custom-title":
		t.custom, t.at = e.CustomTitle, e.Timestamp
	case e.Type == "tag" && e.Tag != nil:
		info.Tag = *e.Tag
	case e.Type == "user" && info.FirstPrompt == "" && !e.Meta && !e.Sidechain:
		info.FirstPrompt = promptText(e.Message)
	}
}

// promptText is the text of an input; empty for results of tools.
func promptText(message json.RawMessage) string {
	var m struct {
		Content agent.Content `json:"content"`
	}
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	return strings.TrimSpace(m.Content.Text())
}
