package differential

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A script is a run to be compared.
type script struct {
	name  string
	turns func() []modeltest.Turn
	// options make the run's options; what their functions are told goes into the record.
	options func(w *world) *agent.Options
	// run runs it; nil asks one question.
	run func(w *world, e agent.Engine, o *agent.Options)
}

// A world is what a script runs in, once for each engine.
type world struct {
	*testing.T
	*record
	model *modeltest.Model
	// running is told of each call of a tool that waits, release lets it go on.
	running, release chan struct{}
}

// The same scripts on both engines: what the model is sent and what the program hears is the same,
// but for the differences that docs/engines.md lists.
func TestEnginesAgree(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	used := map[string]bool{}
	for _, group := range [][]script{contentScripts, failureScripts, limitScripts, nameScripts, permissionScripts, hookScripts, questionScripts, conversationScripts, outputScripts} {
		for _, s := range group {
			t.Run(s.name, func(t *testing.T) {
				ours := s.record(t, func(_ *testing.T, m *modeltest.Model) agent.Engine {
					return native.New(&native.Options{APIKey: "test", BaseURL: "http://model.test", HTTPClient: m.Client()})
				})
				for _, f := range compare(ours, s.record(t, cliEngine)) {
					d := listed(s.name, f)
					if d == "" {
						t.Errorf("unlisted difference in %q:\nnative: %s\nCLI:    %s", f.key, f.native, f.cli)
					}
					used[d] = true
				}
			})
		}
	}
	if t.Failed() || testing.Short() || filtered() {
		return
	}
	for _, d := range differences {
		if !used[d.id] {
			t.Errorf("the difference %q is gone: take it off the list here and in docs/engines.md", d.id)
		}
	}
}

// filtered reports whether only some of the scripts run.
func filtered() bool {
	return slices.ContainsFunc(os.Args, func(a string) bool {
		return regexp.MustCompile(`^-test\.run=.*/`).MatchString(a)
	})
}

// What the test takes for known is what the docs tell a user, no more and no less.
func TestDifferencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "engines.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|").FindAllSubmatch(text, -1) {
		documented = append(documented, string(row[1]))
	}
	known := map[string]bool{}
	for _, d := range differences {
		known[d.id] = true
	}
	slices.Sort(documented)
	if want := slices.Sorted(maps.Keys(known)); !slices.Equal(documented, want) {
		t.Errorf("docs/engines.md lists\n%q, the test knows\n%q", documented, want)
	}
}

// record runs the script on one engine.
func (s *script) record(t *testing.T, newEngine func(*testing.T, *modeltest.Model) agent.Engine) *record {
	t.Helper()
	w := &world{T: t, record: newRecord(), model: modeltest.New(t, s.turns()...), running: make(chan struct{}, 4), release: make(chan struct{})}
	var o *agent.Options
	if s.options != nil {
		o = s.options(w)
	} else {
		o = &agent.Options{}
	}
	if o.Model == "" {
		o.Model = "claude-sonnet-4-5"
	}
	o.ToolSearch = agent.ToolSearchOff
	e := newEngine(t, w.model)
	if s.run != nil {
		s.run(w, e, o)
	} else {
		w.query(e, o)
	}
	w.sent(w.model.Requests())
	return w.record
}

// query asks one question.
func (w *world) query(e agent.Engine, o *agent.Options) {
	var last error
	for m, err := range agent.Query(w.Context(), e, "go", o) {
		if m != nil {
			w.hear(m)
		}
		last = err
	}
	w.fail(last)
}

// open starts a conversation that ends with the test.
func (w *world) open(e agent.Engine, o *agent.Options) *agent.Client {
	w.Helper()
	c, err := agent.Open(w.Context(), e, o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// say says something and hears the answer.
func (w *world) say(c *agent.Client, text string) {
	w.Helper()
	if err := c.Send(w.Context(), text); err != nil {
		w.Fatal(err)
	}
	w.answer(c)
}

// answer hears one turn.
func (w *world) answer(c *agent.Client) {
	w.Helper()
	for m, err := range c.Response(w.Context()) {
		if err != nil {
			w.Fatal(err)
		}
		w.hear(m)
	}
}

// cliEngine is the real CLI in a network that ends at the model.
func cliEngine(t *testing.T, m *modeltest.Model) agent.Engine {
	t.Helper()
	l := peers.NewLoopback(t)
	env := peers.ClaudeEnv(t, l.Serve(t, m))
	return &withEnv{claudecode.New(&claudecode.Options{Path: l.Executable(t, peers.ClaudePath(t))}), env, t.TempDir()}
}

// withEnv lays an environment under the one of each run, and gives it a directory of its own.
type withEnv struct {
	agent.Engine
	env map[string]string
	dir string
}

func (e *withEnv) Open(ctx context.Context, o *agent.Options) (agent.Session, error) {
	c := *o
	c.Env = maps.Clone(e.env)
	maps.Copy(c.Env, o.Env)
	if c.Dir == "" {
		c.Dir = e.dir
	}
	return e.Engine.Open(ctx, &c)
}
