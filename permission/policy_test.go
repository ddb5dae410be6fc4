package permission

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewPolicyReportsAndKeepsTheRest(t *testing.T) {
	p, problems := NewPolicy(&Options{
		Mode:  "yolo",
		Allow: []string{"mcp__*", "mcp__srv__read", "Bash(ls)"},
		Deny:  []string{"mcp__bad.key"},
		Tools: map[string]map[string]ToolPolicy{"srv": {"write": "never", "list": AlwaysAllow}},
	})
	var got []string
	for _, pr := range problems {
		got = append(got, pr.String())
	}
	want := []string{
		`"yolo": unknown mode; the run is in default mode; write default, acceptEdits, plan, bypassPermissions, dontAsk or auto`,
		`deny rule "mcp__bad.key": matches nothing: in a tool's name every character but A-Z a-z 0-9 _ - has become _; write mcp__bad_key`,
		`allow rule "mcp__*": an allow rule may have * only after a literal mcp__SERVER__; write one rule mcp__SERVER__* for each server`,
		`allow rule "Bash(ls)": looks at arguments, which only the Claude Code CLI does for its own tools; here it matches nothing`,
		`"never": unknown permission policy for tool "write" of server "srv"; each call is asked about; write always_allow, always_ask or always_deny`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
	for name, want := range map[string]Behavior{"read": Allow, "write": Ask, "list": Allow, "other": Ask} {
		if d := p.Decide(tool("srv", name)); d.Behavior != want {
			t.Errorf("%s: got %s, want %s", name, d.Behavior, want)
		}
	}
	if p.Mode() != ModeDefault {
		t.Errorf("mode %s, want default", p.Mode())
	}
	// A policy that is not known never lets a call through, not even where everything runs.
	bypass, err := p.WithMode(ModeBypassPermissions)
	if err != nil {
		t.Fatal(err)
	}
	if d := bypass.Decide(tool("srv", "write")); d.Behavior != Ask {
		t.Errorf("write under bypass: got %s, want ask", d.Behavior)
	}
}

func TestApply(t *testing.T) {
	base := Options{Allow: []string{"mcp__a__x"}, Deny: []string{"mcp__d"}}
	rule := func(names ...string) (out []UpdateRule) {
		for _, n := range names {
			out = append(out, UpdateRule{ToolName: n})
		}
		return out
	}
	add := Update{Type: AddRules, Behavior: Allow, Rules: rule("mcp__a__y"), Destination: DestinationSession}
	tests := []struct {
		name     string
		updates  []Update
		allow    []string
		deny     []string
		mode     Mode
		problems []string
	}{
		{"none", nil, []string{"mcp__a__x"}, []string{"mcp__d"}, ModeDefault, nil},
		{"addRules", []Update{add}, []string{"mcp__a__x", "mcp__a__y"}, []string{"mcp__d"}, ModeDefault, nil},
		{"addRules twice", []Update{add, add}, []string{"mcp__a__x", "mcp__a__y"}, []string{"mcp__d"}, ModeDefault, nil},
		{"addRules without destination is the session's", []Update{
			{Type: AddRules, Behavior: Allow, Rules: rule("mcp__a__y")}, {Type: RemoveRules, Behavior: Allow, Rules: rule("mcp__a__y"), Destination: DestinationSession},
		}, []string{"mcp__a__x"}, []string{"mcp__d"}, ModeDefault, nil},
		{"addRules deny", []Update{{Type: AddRules, Behavior: Deny, Rules: rule("mcp__a__*")}}, []string{"mcp__a__x"}, []string{"mcp__d", "mcp__a__*"}, ModeDefault, nil},
		{"addRules, a faulty one among them", []Update{{Type: AddRules, Behavior: Allow, Rules: rule("mcp__*", "mcp__a__y")}}, []string{"mcp__a__x", "mcp__a__y"}, []string{"mcp__d"}, ModeDefault, []string{"only after a literal"}},
		{"removeRules", []Update{add, {Type: RemoveRules, Behavior: Allow, Rules: rule("mcp__a__y"), Destination: DestinationSession}}, []string{"mcp__a__x"}, []string{"mcp__d"}, ModeDefault, nil},
		{"removeRules at another destination", []Update{add, {Type: RemoveRules, Behavior: Allow, Rules: rule("mcp__a__y"), Destination: DestinationUserSettings}}, []string{"mcp__a__x", "mcp__a__y"}, []string{"mcp__d"}, ModeDefault, []string{"finds no such rule"}},
		{"removeRules of another behavior", []Update{add, {Type: RemoveRules, Behavior: Ask, Rules: rule("mcp__a__y")}}, []string{"mcp__a__x", "mcp__a__y"}, []string{"mcp__d"}, ModeDefault, []string{"finds no such rule"}},
		{"the program's rules stay", []Update{{Type: RemoveRules, Behavior: Deny, Rules: rule("mcp__d"), Destination: DestinationCLIArg}, {Type: ReplaceRules, Behavior: Deny, Destination: DestinationCLIArg}, {Type: RemoveRules, Behavior: Deny, Rules: rule("mcp__d")}}, []string{"mcp__a__x"}, []string{"mcp__d"}, ModeDefault, []string{"cannot change", "cannot change", "finds no such rule"}},
		{"replaceRules", []Update{add, {Type: ReplaceRules, Behavior: Allow, Rules: rule("mcp__b", "mcp__c")}}, []string{"mcp__a__x", "mcp__b", "mcp__c"}, []string{"mcp__d"}, ModeDefault, nil},
		{"replaceRules by none", []Update{add, {Type: ReplaceRules, Behavior: Allow}}, []string{"mcp__a__x"}, []string{"mcp__d"}, ModeDefault, nil},
		{"setMode", []Update{{Type: SetMode, Mode: ModePlan}}, []string{"mcp__a__x"}, []string{"mcp__d"}, ModePlan, nil},
		{"setMode, unknown", []Update{{Type: SetMode, Mode: "yolo"}, {Type: SetMode}}, []string{"mcp__a__x"}, []string{"mcp__d"}, ModeDefault, []string{"unknown mode", "unknown mode"}},
		{"directories", []Update{{Type: "addDirectories", Directories: []string{"/x"}}}, []string{"mcp__a__x"}, []string{"mcp__d"}, ModeDefault, []string{"changes no permission of a tool"}},
		{"unknown behavior", []Update{{Type: AddRules, Behavior: "maybe", Rules: rule("mcp__b")}}, []string{"mcp__a__x"}, []string{"mcp__d"}, ModeDefault, []string{"unknown behavior; write allow, deny or ask"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := policy(t, &base)
			next, problems := p.Apply(tt.updates...)
			if d := cmp.Diff(tt.allow, next.Rules(Allow)); d != "" {
				t.Errorf("allow (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.deny, next.Rules(Deny)); d != "" {
				t.Errorf("deny (-want +got):\n%s", d)
			}
			if next.Mode() != tt.mode {
				t.Errorf("mode %s, want %s", next.Mode(), tt.mode)
			}
			if len(problems) != len(tt.problems) {
				t.Fatalf("got problems %v, want %q", problems, tt.problems)
			}
			for i, pr := range problems {
				if !strings.Contains(pr.String(), tt.problems[i]) {
					t.Errorf("problem %v, want %q in it", pr, tt.problems[i])
				}
			}
			if got := p.Rules(Allow); !slices.Equal(got, base.Allow) || p.Mode() != ModeDefault {
				t.Errorf("the policy itself changed: %q, %s", got, p.Mode())
			}
		})
	}
}

// Many goroutines may derive policies from one; no rule of one shows up in another.
func TestApplyIsPureUnderRace(t *testing.T) {
	base, _ := policy(t, &Options{Allow: []string{"mcp__a__x"}}).Apply(Update{Type: AddRules, Behavior: Allow, Rules: []UpdateRule{{ToolName: "mcp__a__y"}}})
	var wg sync.WaitGroup
	for _, name := range []string{"mcp__p", "mcp__q", "mcp__r", "mcp__s"} {
		wg.Go(func() {
			next, _ := base.Apply(Update{Type: AddRules, Behavior: Allow, Rules: []UpdateRule{{ToolName: name}}})
			if got, want := next.Rules(Allow), []string{"mcp__a__x", "mcp__a__y", name}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	wg.Wait()
}

// What is suggested to the one who is asked silences later questions once it is applied.
func TestSuggestSettlesTheNextCall(t *testing.T) {
	c := tool("my.server", "write")
	raw, err := json.Marshal(policy(t, nil).Suggest(c))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"type":"addRules","rules":[{"toolName":"mcp__my_server__write"}],"behavior":"allow","destination":"localSettings"}]`
	if string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	p, _ := policy(t, nil).Apply(policy(t, nil).Suggest(c)...)
	if d := p.Decide(c); d.Behavior != Allow {
		t.Errorf("after the suggestion: %s, want allow", d.Behavior)
	}
}

func TestParsePromptResult(t *testing.T) {
	tests := []struct {
		name, in string
		want     PromptResult
	}{
		{"allow", `{"behavior":"allow"}`, PromptResult{Behavior: Allow}},
		{"allow, null input keeps the arguments", `{"behavior":"allow","updatedInput":null}`, PromptResult{Behavior: Allow}},
		{"allow, empty input replaces them", `{"behavior":"allow","updatedInput":{}}`, PromptResult{Behavior: Allow, UpdatedInput: json.RawMessage(`{}`)}},
		{"allow with rules", `{"behavior":"allow","updatedInput":{"a":1},"updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"session"}]}`, PromptResult{
			Behavior: Allow, UpdatedInput: json.RawMessage(`{"a":1}`),
			UpdatedPermissions: []Update{{Type: AddRules, Rules: []UpdateRule{{"Bash", "ls"}}, Behavior: Allow, Destination: DestinationSession}},
		}},
		{"deny", `{"behavior":"deny","message":"no"}`, PromptResult{Behavior: Deny, Message: "no"}},
		{"deny, empty message", `{"behavior":"deny","message":"","interrupt":true}`, PromptResult{Behavior: Deny, Interrupt: true}},
		{"unknown fields", `{"behavior":"deny","message":"no","toolUseID":"x"}`, PromptResult{Behavior: Deny, Message: "no"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParsePromptResult([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			raw, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := ParsePromptResult(raw); err != nil || cmp.Diff(got, again) != "" {
				t.Errorf("%s does not read back: %v %v", raw, again, err)
			}
		})
	}
	for _, bad := range []string{``, `yes`, `[]`, `{}`, `{"behavior":"ask"}`, `{"behavior":"deny"}`, `{"behavior":"allow","updatedInput":[]}`, `{"behavior":7}`, `{"behavior":"Allow"}`} {
		v, err := ParsePromptResult([]byte(bad))
		if !errors.Is(err, ErrPromptResult) || v.Behavior != "" {
			t.Errorf("%s: got %v, %v; want ErrPromptResult", bad, v, err)
		}
	}
}
