package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
)

const someID, otherID = "3f0c1f6e-8f4b-4a53-9a0e-1d1f6f0c9f10", "b7c1f6e0-8f4b-4a53-9a0e-1d1f6f0c9f11"

// storeSession writes a transcript into a configuration folder and returns the sessions in it.
func storeSession(t *testing.T, config, dir, id, text string) *Store {
	t.Helper()
	path := filepath.Join(config, "projects", notInFolder.ReplaceAllString(dir, "-"), id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ts, err := Open(map[string]string{"CLAUDE_CONFIG_DIR": config})
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

func said(uuid, parent, role, text string) string {
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%q,"isSidechain":false,"timestamp":"2026-11-30T09:00:00Z","cwd":"/srv/project","gitBranch":"main","entrypoint":"sdk-go","sessionId":"s","message":{"role":%q,"content":%q}}`+"\n",
		role, uuid, parent, role, text)
}

func texts(t *testing.T, messages []Message) []string {
	t.Helper()
	var all []string
	for _, m := range messages {
		switch m := m.Message.(type) {
		case *agent.User:
			all = append(all, "user: "+m.Message.Content.Text())
		case *agent.Assistant:
			all = append(all, "assistant: "+m.Text())
		case *agent.System:
			all = append(all, "system: "+m.Subtype)
		}
	}
	return all
}

// What cannot be read is reported and costs no more than itself.
func TestBadLinesOfATranscript(t *testing.T) {
	text := said("1", "", "user", "first") +
		"{not json\n" +
		`{"type":"user","uuid":7,"message":{"role":"user","content":"no uuid"}}` + "\n" +
		`[1,2]` + "\n" + "\n" +
		`{"type":"brand-new","uuid":"x","parentUuid":"1"}` + "\n" +
		said("2", "1", "assistant", "answer") +
		`{"type":"assistant","uuid":"3","parentUuid":"2","message":"no object"}` + "\n" +
		`{"type":"system","subtype":"compact_boundary","uuid":"4","parentUuid":null,"logicalParentUuid":"3"}` + "\n" +
		said("5", "gone", "user", "second") +
		strings.TrimSuffix(said("6", "5", "assistant", "cut"), "\"}}\n")
	ts := storeSession(t, t.TempDir(), "/srv/project", someID, text)
	got, problems, err := ts.Messages(someID, MessageQuery{System: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"user: first", "assistant: answer", "system: compact_boundary", "user: second"}, texts(t, got)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Line)
	}
	slices.Sort(lines)
	if diff := cmp.Diff([]int{2, 3, 4, 7, 9, 10}, lines); diff != "" {
		t.Errorf("lines with problems (-want +got):\n%s\n%v", diff, problems)
	}
	page, _, err := ts.Messages(someID, MessageQuery{Offset: 1, Limit: 1})
	if err != nil || len(page) != 1 || page[0].UUID != "2" || page[0].ParentUUID != "1" || page[0].Time.IsZero() || !json.Valid(page[0].Raw) {
		t.Errorf("a page: %+v, %v", page, err)
	}
}

// A conversation that was rewound goes on from where it was rewound to.
func TestTheBranchThatGoesOn(t *testing.T) {
	text := said("1", "", "user", "first") + said("2", "1", "assistant", "one") +
		said("3", "2", "user", "dropped") + said("4", "3", "assistant", "dropped, too") +
		said("5", "2", "user", "instead") + said("6", "5", "assistant", "two") +
		`{"type":"user","uuid":"side","isSidechain":true,"parentUuid":null,"message":{"role":"user","content":"aside"}}` + "\n" +
		`{"type":"user","uuid":"meta","isMeta":true,"parentUuid":"6","message":{"role":"user","content":"not said"}}` + "\n"
	ts := storeSession(t, t.TempDir(), "/srv/project", someID, text)
	got, problems, err := ts.Messages(someID, MessageQuery{})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if diff := cmp.Diff([]string{"user: first", "assistant: one", "user: instead", "assistant: two"}, texts(t, got)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// A transcript whose links run in a circle ends.
func TestCircularTranscript(t *testing.T) {
	ts := storeSession(t, t.TempDir(), "/srv/project", someID, said("1", "2", "user", "a")+said("2", "1", "assistant", "b")+said("3", "3", "user", "c"))
	got, problems, err := ts.Messages(someID, MessageQuery{})
	if err != nil || len(got) != 3 || len(problems) != 2 {
		t.Errorf("got %q, %v, %v", texts(t, got), problems, err)
	}
}

func TestListOfSessions(t *testing.T) {
	config := t.TempDir()
	now := time.Now()
	if ts, err := Open(map[string]string{"CLAUDE_CONFIG_DIR": config}); err != nil {
		t.Fatal(err)
	} else if all, _, err := ts.List(Query{}); err != nil || len(all) != 0 {
		t.Errorf("nothing stored: %v, %v", all, err)
	}
	long := strings.Repeat(said("x", "", "assistant", strings.Repeat("blah ", 1000)), 60)
	ids := []string{someID, otherID, "00000000-0000-4000-8000-000000000003"}
	storeSession(t, config, "/srv/project", ids[0], said("1", "", "user", "the question"))
	storeSession(t, config, "/srv/project", ids[1], said("1", "", "user", "long ago")+long+`{"type":"custom-title","customTitle":"Named","timestamp":"2026-11-30T09:00:00Z"}`+"\n"+`{"type":"tag","tag":"work"}`+"\nbroken\n")
	ts := storeSession(t, config, "/srv/other", ids[2], `{"type":"summary","summary":"About it"}`+"\n")
	for i, id := range ids {
		path, err := ts.find(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	all, problems, err := ts.List(Query{})
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	if len(problems) != 1 || problems[0].Line != 0 || !strings.Contains(problems[0].Path, ids[1]) {
		t.Errorf("problems %v", problems)
	}
	for i, want := range []Session{
		{ID: ids[2], Title: "About it"},
		{ID: ids[1], Title: "Named", CustomTitle: "Named", FirstPrompt: "long ago", Tag: "work", Dir: "/srv/project", GitBranch: "main", Entrypoint: "sdk-go"},
		{ID: ids[0], Title: "the question", FirstPrompt: "the question", Dir: "/srv/project", GitBranch: "main", Entrypoint: "sdk-go"},
	} {
		got := all[i]
		if got.Size == 0 || got.Modified.IsZero() || i > 0 && got.Created.IsZero() || got.Path == "" {
			t.Errorf("%+v", got)
		}
		got.Size, got.Modified, got.Created, got.Path = 0, time.Time{}, time.Time{}, ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("session %d (-want +got):\n%s", i, diff)
		}
	}
	if some, _, err := ts.List(Query{Dir: "/srv/project", Offset: 1, Limit: 5}); err != nil || len(some) != 1 || some[0].ID != ids[0] {
		t.Errorf("of a directory: %+v, %v", some, err)
	}
}

func TestEditingASession(t *testing.T) {
	config := t.TempDir()
	ts := storeSession(t, config, "/srv/project", someID, strings.TrimSuffix(said("1", "", "user", "hi"), "\n"))
	for _, err := range []error{ts.Rename(someID, "  A title "), ts.Tag(someID, "work")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	info, problems, err := ts.Session(someID)
	if err != nil || len(problems) != 0 || info.Title != "A title" || info.Tag != "work" || info.FirstPrompt != "hi" {
		t.Errorf("got %+v, %v, %v", info, problems, err)
	}
	if err := ts.Tag(someID, ""); err != nil {
		t.Fatal(err)
	}
	if info, _, err := ts.Session(someID); err != nil || info.Tag != "" {
		t.Errorf("got %+v, %v", info, err)
	}
	if err := ts.Rename(someID, " "); err == nil {
		t.Error("an empty title was accepted")
	}
	if err := ts.Delete(someID); err != nil {
		t.Fatal(err)
	}
	_, _, err = ts.Messages(someID, MessageQuery{})
	for _, err := range []error{err, ts.Delete(someID), ts.Rename(someID, "x"), ts.Tag(otherID, "x")} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	}
	left, err := filepath.Glob(filepath.Join(config, "projects", "*", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// No ID leads out of the folder.
func TestSessionIDsAreNoPaths(t *testing.T) {
	ts := storeSession(t, t.TempDir(), "/srv/project", someID, said("1", "", "user", "hi"))
	for _, id := range []string{"../" + someID, "*", "", someID + "/x"} {
		if _, _, err := ts.Messages(id, MessageQuery{}); err == nil {
			t.Errorf("session %q was read", id)
		}
	}
	for _, id := range []string{"../x", "", "a/b", `a\b`} {
		if _, _, err := ts.SubagentMessages(someID, id, MessageQuery{}); err == nil {
			t.Errorf("subagent %q was read", id)
		}
	}
}
