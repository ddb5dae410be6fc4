package claudecode

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/transcript"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/modeltest"
)

// sdkReader has the TypeScript SDK read the same transcripts.
const sdkReader = `
import { listSessions, getSessionMessages, getSessionInfo } from '@anthropic-ai/claude-agent-sdk'
const [dir, id] = process.argv.slice(-2)
const sessions = (await listSessions({ dir })).map(s => ({ id: s.sessionId, title: s.summary, custom: s.customTitle, first: s.firstPrompt, tag: s.tag }))
const messages = (await getSessionMessages(id, { dir })).map(m => m.type + ' ' + m.uuid)
const info = await getSessionInfo(id, { dir })
console.log('ANSWER ' + JSON.stringify({ sessions, messages, title: info?.summary, tag: info?.tag }))
`

// sayIn sends one input and returns the answer's session and result.
func sayIn(t *testing.T, e agent.Engine, o *agent.Options, text string) *agent.Result {
	t.Helper()
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	return response(t, c)
}

// Sessions on the real CLI: one is stored, gone on with by ID and as the latest, forked and cut; what
// the CLI stored reads as the TypeScript SDK reads it.
func TestRealSessions(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, modeltest.Text("one"), modeltest.Text("two"), modeltest.Text("three"), modeltest.Text("four"), modeltest.Text("five"))
	e, env := realWith(t, m, &Options{})
	ts, err := transcript.Open(env)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// last tells what the model was sent in the last request.
	last := func() string {
		var all []string
		for _, msg := range m.Last().Messages {
			for _, c := range msg.Content {
				if msg.Role != "system" {
					all = append(all, msg.Role+": "+c.Text)
				}
			}
		}
		return strings.Join(all, "\n")
	}
	wantLast := func(step string, want ...string) {
		t.Helper()
		if got := last(); got != strings.Join(want, "\n") {
			t.Errorf("%s: the model was sent\n%s", step, got)
		}
	}
	if r := sayIn(t, e, &agent.Options{Dir: dir, SessionID: someID}, "first"); r.SessionID != someID {
		t.Errorf("new session %q", r.SessionID)
	}
	kept, _, err := ts.Messages(someID, transcript.MessageQuery{})
	if err != nil || len(kept) != 2 {
		t.Fatal(kept, err)
	}
	if r := sayIn(t, e, &agent.Options{Dir: dir, Resume: agent.Resume{ID: someID}}, "second"); r.SessionID != someID {
		t.Errorf("resumed as %q", r.SessionID)
	}
	wantLast("resumed", "user: first", "assistant: one", "user: second")
	if r := sayIn(t, e, &agent.Options{Dir: dir, Resume: agent.Resume{Latest: true}}, "third"); r.SessionID != someID {
		t.Errorf("the latest is %q", r.SessionID)
	}
	wantLast("latest", "user: first", "assistant: one", "user: second", "assistant: two", "user: third")
	if r := sayIn(t, e, &agent.Options{Dir: dir, SessionID: otherID, Resume: agent.Resume{ID: someID, Fork: true}}, "fourth"); r.SessionID != otherID {
		t.Errorf("forked as %q", r.SessionID)
	}
	wantLast("forked", "user: first", "assistant: one", "user: second", "assistant: two", "user: third", "assistant: three", "user: fourth")
	if r := sayIn(t, e, &agent.Options{Dir: dir, Resume: agent.Resume{ID: someID, Fork: true, At: kept[1].UUID}}, "fifth"); r.SessionID == someID || r.SessionID == "" {
		t.Errorf("cut and forked as %q", r.SessionID)
	}
	wantLast("cut", "user: first", "assistant: one", "user: fifth")

	if err := ts.Rename(someID, "Ours"); err != nil {
		t.Fatal(err)
	}
	if err := ts.Tag(someID, "work"); err != nil {
		t.Fatal(err)
	}
	compareWithSDK(t, ts, env, dir)

	// A session that is not there is an error that says so.
	_, err = ask(t, e, &agent.Options{Dir: dir, Resume: agent.Resume{ID: "00000000-0000-4000-8000-000000000009"}})
	if err == nil || !strings.Contains(err.Error(), "No conversation found") {
		t.Errorf("a session that is not there: %v", err)
	}
	if _, _, err := ts.Session("00000000-0000-4000-8000-000000000009"); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("its description: %v", err)
	}
}

// compareWithSDK reads the stored sessions with both.
func compareWithSDK(t *testing.T, ts *transcript.Store, env map[string]string, dir string) {
	t.Helper()
	type session struct{ ID, Title, Custom, First, Tag string }
	script := peers.Script(t, sdkReader, dir, someID)
	if script.Env == nil {
		script.Env = map[string]string{}
	}
	maps.Copy(script.Env, env)
	p := peers.Start(t, script)
	answer := p.WaitFor(t, `ANSWER (.*)`)
	var theirs struct {
		Sessions   []session
		Messages   []string
		Title, Tag string
	}
	if err := json.Unmarshal([]byte(answer[1]), &theirs); err != nil {
		t.Fatal(err)
	}
	all, problems, err := ts.List(transcript.Query{Dir: dir})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	var ours []session
	for _, s := range all {
		ours = append(ours, session{s.ID, s.Title, s.CustomTitle, s.FirstPrompt, s.Tag})
		if s.Entrypoint == "" || s.Dir == "" || s.Created.IsZero() || filepath.Base(s.Path) != s.ID+".jsonl" {
			t.Errorf("session %+v", s)
		}
	}
	byID := func(a, b session) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(ours, byID)
	slices.SortFunc(theirs.Sessions, byID)
	if diff := cmp.Diff(theirs.Sessions, ours); diff != "" {
		t.Errorf("sessions (-theirs +ours):\n%s", diff)
	}
	stored, problems, err := ts.Messages(someID, transcript.MessageQuery{})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	var messages []string
	for _, s := range stored {
		kind := "assistant"
		if _, ok := s.Message.(*agent.User); ok {
			kind = "user"
		}
		messages = append(messages, kind+" "+s.UUID)
	}
	if diff := cmp.Diff(theirs.Messages, messages); diff != "" {
		t.Errorf("messages (-theirs +ours):\n%s", diff)
	}
	info, _, err := ts.Session(someID)
	if err != nil || info.Title != theirs.Title || info.Tag != theirs.Tag {
		t.Errorf("ours %+v, %v; theirs %q, %q", info, err, theirs.Title, theirs.Tag)
	}
}
