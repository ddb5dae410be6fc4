package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/modeltest"
)

// TestMain lets this binary be the example when it is started by a test, or by the example as its stdio server.
func TestMain(m *testing.M) {
	if os.Getenv("QUICKSTART") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// quickstart runs the example in an environment of its own.
func quickstart(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Dir = t.TempDir() // no configuration files
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ANTHROPIC_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, "QUICKSTART=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// What a newcomer sees first: that it is offline, three connected servers, a call of each kind with its real
// result, and an answer that contains the results.
func TestQuickstartOffline(t *testing.T) {
	out := quickstart(t)
	first, rest, _ := strings.Cut(out, "\n")
	if !strings.Contains(first, "offline model") {
		t.Errorf("the first line does not say that it is offline: %s", first)
	}
	events, answer, _ := strings.Cut(rest, "\n\n")
	want := []string{
		`server calc  connected`, `server stock connected`, `server sums  connected`,
		`call   mcp__stock__lookup {"SKU": ?"AB-00017"}`, `result {"Quantity":7,"PriceUSD":12.5}`,
		`call   mcp__calc__multiply {"A": ?7, ?"B": ?12.5}`, `result 87.5`,
		`call   mcp__sums__add {"A": ?87.5, ?"B": ?25}`, `result 112.5`,
	}
	if !regexp.MustCompile(`^` + strings.Join(want, "\n") + `\n?$`).MatchString(events) {
		t.Errorf("the run was\n%s\nwant\n%s", events, strings.Join(want, "\n"))
	}
	for _, part := range []string{`"Quantity":7`, "87.5", "112.5"} {
		if !strings.Contains(answer, part) {
			t.Errorf("no %s in the answer\n%s", part, answer)
		}
	}
}

// With a key it asks the model that ANTHROPIC_BASE_URL names.
func TestQuickstartAsksTheModel(t *testing.T) {
	model := modeltest.New(t, modeltest.ToolUse("mcp__stock__lookup", `{"SKU":"AB-00017"}`), modeltest.Text("There are 7 left."))
	server, err := model.Serve()
	if err != nil {
		t.Fatal(err)
	}
	out := quickstart(t, "ANTHROPIC_API_KEY=test-key", "ANTHROPIC_BASE_URL="+server.URL)
	if strings.Contains(out, "offline") || !strings.HasSuffix(out, "\nThere are 7 left.\n") {
		t.Errorf("the output was\n%s", out)
	}
}

// It is what the README promises: an example that can be read at one sitting.
func TestQuickstartIsShort(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "\n"); n >= 100 {
		t.Errorf("main.go has %d lines, want fewer than 100", n)
	}
}
