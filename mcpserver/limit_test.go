package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// B17 B18 B19 B20 B28
func TestTheFirstLimitThatIsSet(t *testing.T) {
	const sec = time.Second
	tests := []struct {
		name                  string
		tool, session, server time.Duration
		environment           []string
		want                  time.Duration
		warns                 string
	}{
		{name: "none", want: 60 * sec},
		{name: "tool", tool: sec, session: 2 * sec, server: 3 * sec, environment: []string{envAgentTimeout, "9"}, want: sec},
		{name: "session", session: 2 * sec, server: 3 * sec, environment: []string{envAgentTimeout, "9"}, want: 2 * sec},
		{name: "server", server: 3 * sec, environment: []string{envAgentTimeout, "9"}, want: 3 * sec},
		{name: "not clamped in code", server: 600 * sec, want: 600 * sec},
		{name: "environment", environment: []string{envAgentTimeout, "9", envToolTimeout, "7000"}, want: 9 * sec},
		{name: "clamped below", environment: []string{"CLAUDE_AGENT_TOOL_TIMEOUT", "0"}, want: sec},
		{name: "clamped below zero", environment: []string{envAgentTimeout, "-5"}, want: sec},
		{name: "clamped above", environment: []string{envAgentTimeout, "9999"}, want: 300 * sec},
		{name: "fraction", environment: []string{envAgentTimeout, " 2.5 "}, want: 2500 * time.Millisecond},
		{name: "milliseconds", environment: []string{"MCP_TOOL_TIMEOUT", "7000"}, want: 7 * sec},
		{name: "milliseconds, not clamped", environment: []string{envToolTimeout, "27800000"}, want: 27800 * sec},
		{name: "no number", environment: []string{envAgentTimeout, "soon", envToolTimeout, "7000"}, want: 7 * sec, warns: "soon"},
		{name: "no number either", environment: []string{envToolTimeout, "NaN"}, want: 60 * sec, warns: "NaN"},
		{name: "not positive", environment: []string{envToolTimeout, "0"}, want: 60 * sec, warns: envToolTimeout},
		{name: "empty", environment: []string{envAgentTimeout, ""}, want: 60 * sec},
		{name: "no limit by the tool", tool: NoTimeout, session: sec, want: NoTimeout},
		{name: "no limit by the session", session: NoTimeout, server: sec, want: NoTimeout},
		{name: "no limit by the server", server: NoTimeout, environment: []string{envAgentTimeout, "9"}, want: NoTimeout},
	}
	for _, tt := range tests {
		var log logBuffer
		s := newTestServer(t, &Options{Timeout: tt.server, LookupEnv: env(tt.environment...), Logger: log.logger()})
		if err := s.AddTool(&Tool{Name: "t", Timeout: tt.tool}, returns(nil, nil)); err != nil {
			t.Fatal(err)
		}
		ss := s.NewSession(&SessionOptions{Timeout: tt.session})
		if got := ss.ToolTimeout("t"); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		if warned := strings.Count(log.String(), "level=WARN"); warned != len(tt.warns[:min(1, len(tt.warns))]) || !strings.Contains(log.String(), tt.warns) {
			t.Errorf("%s: %d warnings: %s", tt.name, warned, log.String())
		}
		_ = ss.Close()
	}
}

func TestASessionsOwnEnvironment(t *testing.T) {
	s := newTestServer(t, &Options{LookupEnv: env(envAgentTimeout, "9")})
	ss := s.NewSession(&SessionOptions{LookupEnv: env(envToolTimeout, "4000")})
	defer ss.Close()
	if s.Timeout() != 9*time.Second || ss.Timeout() != 4*time.Second {
		t.Errorf("server %v, session %v", s.Timeout(), ss.Timeout())
	}
}

// B16 R44
func TestACallThatIsTooLongEndsInBand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{Timeout: 3 * time.Second, LookupEnv: none})
		defer s.Close()
		deaf := make(chan struct{})
		causes := make(chan error, 2)
		addRaw(t, s, "polite", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil, errors.New("I was interrupted")
		})
		addRaw(t, s, "deaf", func(context.Context, json.RawMessage) (*Result, error) {
			<-deaf
			return Text("too late"), nil
		})
		for _, name := range []string{"polite", "deaf"} {
			start := time.Now()
			wantText(t, s, name, ``, "Tool '"+name+"' timed out after 3 seconds; the tool may have run", true)
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("%s took %v", name, took)
			}
		}
		if cause := <-causes; !errors.Is(cause, errCallLimit) {
			t.Errorf("the handler's context ended with %v", cause)
		}
		s.SetDispatch(Inline, nil)
		wantText(t, s, "polite", ``, "Tool 'polite' timed out after 3 seconds; the tool may have run", true)
		close(deaf)
	})
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		defer s.Close()
		if err := s.AddTool(&Tool{Name: "patient", Timeout: NoTimeout}, func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			if _, limited := ctx.Deadline(); limited {
				return nil, errors.New("there is a deadline")
			}
			time.Sleep(24 * time.Hour)
			return Text("a day later"), nil
		}); err != nil {
			t.Fatal(err)
		}
		wantText(t, s, "patient", ``, "a day later", false)
	})
}

func TestLimitsOfReadersAndPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{Timeout: time.Minute, LookupEnv: none})
		defer s.Close()
		if err := errors.Join(
			s.AddResource(&mcp.Resource{URI: "mem:slow"}, func(ctx context.Context) (*mcp.ReadResourceResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}),
			s.AddPrompt(&mcp.Prompt{Name: "slow"}, func(ctx context.Context, _ map[string]string) (*mcp.GetPromptResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})); err != nil {
			t.Fatal(err)
		}
		_, err := s.ReadResource(t.Context(), "mem:slow")
		_, err2 := s.GetPrompt(t.Context(), "slow", nil)
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), "timed out after 60 seconds") {
				t.Errorf("got %v", err)
			}
		}
	})
}

// The caller's own deadline is an error for the caller, not a result.
func TestTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		defer s.Close()
		addRaw(t, s, "slow", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			<-ctx.Done()
			return nil, errors.New("interrupted")
		})
		for _, sc := range []Scheduling{Concurrent, Inline} {
			s.SetDispatch(sc, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := s.CallTool(ctx, "slow", nil)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"slow"`) {
				t.Errorf("%v: got %v", sc, err)
			}
			cancel()
			why := errors.New("the user left")
			cctx, cancelCause := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancelCause(why) })
			if _, err := s.CallTool(cctx, "slow", nil); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
				t.Errorf("%v: got %v, want Canceled and its cause", sc, err)
			}
		}
	})
}
