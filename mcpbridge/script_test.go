package mcpbridge_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/tools/txtar"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

var update = flag.Bool("update", false, "write what came out into the scripts")

// Each script in testdata is a conversation with a bridge. The file in has one
// message a line, out what came of each: the reply or (no reply), what the
// bridge sent by itself as "send …", and (waiting) while there is no reply yet.
// A line in parentheses does something else: (wait 1m), (close), (add NAME),
// (remove NAME), (update URI). The comment says what the case is for; its line
// "server: full" picks the server, "options: {…}" sets options of the bridge.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil || len(ar.Files) == 0 || ar.Files[0].Name != "in" {
				t.Fatalf("a script needs a file in: %v", err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(ar.Comment), string(ar.Files[0].Data)) })
			if *update {
				ar.Files = []txtar.File{ar.Files[0], {Name: "out", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(ar.Files) != 2 {
				t.Fatal("a script needs a file out; run with -update")
			}
			if diff := cmp.Diff(string(ar.Files[1].Data), got); diff != "" {
				t.Errorf("out (-want +got):\n%s", diff)
			}
		})
	}
}

// play runs the script and returns what came out.
func play(t *testing.T, comment, in string) string {
	server := bare(t, nil)
	var opts mcpbridge.Options
	for line := range strings.Lines(comment) {
		if strings.TrimSpace(line) == "server: full" {
			server = full(t, nil)
		}
		if o, ok := strings.CutPrefix(line, "options: "); ok {
			if err := json.Unmarshal([]byte(o), &opts); err != nil {
				t.Fatalf("options: %v", err)
			}
		}
	}
	var out transcript
	opts.Send = func(_ context.Context, raw json.RawMessage) error {
		out.add("send " + string(raw))
		return nil
	}
	bridge := mcpbridge.New(server, &opts)
	for line := range strings.Lines(in) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "("):
			act(t, server, bridge, strings.Trim(line, "()"))
			synctest.Wait()
			continue
		}
		before, at := out.replies(), out.len()
		go func() {
			reply, err := bridge.Handle(t.Context(), json.RawMessage(line))
			switch {
			case err != nil:
				out.reply("error " + err.Error())
			case reply == nil && !strings.Contains(line, `"method"`):
				out.noReply(at)
			case reply == nil:
				out.reply("(no reply)")
			default:
				out.reply(string(reply))
			}
		}()
		synctest.Wait()
		if out.replies() == before {
			out.add("(waiting)")
		}
	}
	if err := bridge.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	synctest.Wait()
	return out.String()
}

func act(t *testing.T, server *mcpserver.Server, bridge *mcpbridge.Bridge, what string) {
	t.Helper()
	verb, arg, _ := strings.Cut(what, " ")
	switch verb {
	case "wait":
		d, err := time.ParseDuration(arg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(d) // fake time: costs nothing
	case "close":
		if err := bridge.Close(); err != nil {
			t.Fatal(err)
		}
	case "add":
		if err := addRaw(server, arg, `{"content":[]}`); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // changes close together are told of once
	case "remove":
		server.RemoveTool(arg)
		time.Sleep(time.Second)
	case "prompt":
		err := server.AddPrompt(&mcp.Prompt{Name: arg}, func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	case "update":
		server.NotifyResourceUpdated(arg)
		time.Sleep(time.Second)
	default:
		t.Fatalf("a script cannot (%s)", what)
	}
}

// A transcript is what came out, in order.
type transcript struct {
	mu      sync.Mutex // guards the rest
	lines   []string
	replied int
}

func (tr *transcript) add(line string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, line)
}

func (tr *transcript) reply(line string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, line)
	tr.replied++
}

// noReply adds that an answer has no reply, at the position in the transcript where the
// answer came: the reply that waited for it may be there already.
func (tr *transcript) noReply(at int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = slices.Insert(tr.lines, at, "(no reply)")
	tr.replied++
}

func (tr *transcript) len() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.lines)
}

func (tr *transcript) replies() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.replied
}

func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return fmt.Sprintln(strings.Join(tr.lines, "\n"))
}
