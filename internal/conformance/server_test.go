package conformance

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// The conformance suite runs all server scenarios of both revisions against one
// server on one endpoint: with a handshake and sessions, and without. Every
// scenario that is scored must pass; those that are not (the tasks extension,
// what was added after the release) are listed with what came of them.
func TestServer(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			s, err := newServer()
			if err != nil {
				t.Fatal(err)
			}
			handler := mcpserver.NewHTTPHandler(s, &mcpserver.HTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
			web := httptest.NewServer(handler)
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
				defer cancel()
				if err := handler.Shutdown(ctx); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				web.Close()
			})
			results := t.TempDir()
			p := peers.Start(t, peers.Conformance(t, "server", "--url", web.URL+"/mcp", "--requirements", revision, "-o", results))
			runErr := p.Wait(t)
			run := parse(p.Output())
			scored, failed := 0, 0
			passedChecks, failedChecks := 0, 0
			for _, sc := range run.scenarios {
				if why, free := run.notScored[sc.name]; free {
					t.Logf("not scored (%s): %s: %d passed, %d failed", why, sc.name, sc.passed, sc.failed)
					continue
				}
				scored++
				passedChecks += sc.passed
				failedChecks += sc.failed
				if !sc.ok || sc.failed > 0 {
					failed++
					t.Errorf("%s: %d passed, %d failed\n%s", sc.name, sc.passed, sc.failed, failures(t, results, sc.name))
				}
			}
			t.Logf("%s: %d of %d scored server scenarios pass, %d of %d checks", revision, scored-failed, scored, passedChecks, passedChecks+failedChecks)
			for _, w := range warnings(t, results) {
				t.Logf("warning: %s", w)
			}
			if scored == 0 || runErr != nil {
				t.Fatalf("the suite ended with %v; its output:\n%s", runErr, p.Output())
			}
		})
	}
}

type scenario struct {
	name           string
	ok             bool
	passed, failed int
}

type suiteRun struct {
	scenarios []scenario
	notScored map[string]string // name -> why
}

var (
	scenarioLine = regexp.MustCompile(`(?m)^([✓✗]) ([\w/-]+): (\d+) passed, (\d+) failed`)
	freeLine     = regexp.MustCompile(`(?m)^\s+[✓✗] ([\w/-]+) \(([\w-]+)\)\s*$`)
)

// parse reads the summary that the suite prints at its end.
func parse(output string) suiteRun {
	run := suiteRun{notScored: make(map[string]string)}
	_, summary, _ := strings.Cut(output, "SUMMARY ===")
	for _, m := range scenarioLine.FindAllStringSubmatch(summary, -1) {
		passed, _ := strconv.Atoi(m[3])
		failed, _ := strconv.Atoi(m[4])
		run.scenarios = append(run.scenarios, scenario{m[2], m[1] == "✓", passed, failed})
	}
	for _, m := range freeLine.FindAllStringSubmatch(summary, -1) {
		run.notScored[m[1]] = m[2]
	}
	return run
}

type check struct {
	ID      string          `json:"id"`
	Status  string          `json:"status"`
	Message string          `json:"errorMessage"`
	Details json.RawMessage `json:"details"`
}

// checks reads the checks of the scenarios whose result folders match.
func checks(t *testing.T, results, pattern string) []check {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(results, pattern, "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []check
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var some []check
		if err := json.Unmarshal(data, &some); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
		all = append(all, some...)
	}
	return all
}

func failures(t *testing.T, results, name string) string {
	var out []string
	for _, c := range checks(t, results, "server-"+name+"-20*") {
		if c.Status == "FAILURE" {
			out = append(out, c.ID+": "+c.Message+" "+string(c.Details))
		}
	}
	return strings.Join(out, "\n")
}

func warnings(t *testing.T, results string) []string {
	var out []string
	for _, c := range checks(t, results, "server-*") {
		if c.Status == "WARNING" {
			out = append(out, c.ID+": "+c.Message)
		}
	}
	return out
}
