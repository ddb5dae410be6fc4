package main

import (
	"fmt"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/modeltest"
)

// engine is the engine that the flags ask for, and what frees it. It changes the options where the
// engine wants them otherwise.
func (f *runFlags) engine(p *process, pr *progress, o *agent.Options) (agent.Engine, func(), error) {
	nothing := func() {}
	switch {
	case f.engineName == engineClaude:
		return f.claudeCode(p, pr, o)
	case f.offline:
		return native.New(&native.Options{
			APIKey:       "offline",
			BaseURL:      "http://model.invalid",
			HTTPClient:   modeltest.Offline().Client(),
			DefaultModel: "offline",
			MaxRetries:   native.NoRetries,
			ResultsDir:   p.resultsDir(),
		}), nothing, nil
	}
	return native.New(&native.Options{ResultsDir: p.resultsDir()}), nothing, nil
}

// claudeCode is the engine on the Claude Code CLI. The CLI has this process's environment by itself;
// what stands in the options is only what differs from that.
func (f *runFlags) claudeCode(p *process, pr *progress, o *agent.Options) (agent.Engine, func(), error) {
	e := &claudecode.Options{Path: f.claudePath}
	if f.verbose {
		e.Stderr = func(line string) { pr.above(func() { fmt.Fprintf(p.err, "[claude] %s\n", printable(line)) }) }
	}
	o.Env = map[string]string{}
	if !f.offline {
		return claudecode.New(e), func() {}, nil
	}
	server, err := modeltest.Offline().Serve()
	if err != nil {
		return nil, nil, err
	}
	o.Env["ANTHROPIC_BASE_URL"], o.Env["ANTHROPIC_API_KEY"] = server.URL, "offline"
	o.Env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
	o.Env["ENABLE_TOOL_SEARCH"] = "false" // the offline model does not search
	return claudecode.New(e), func() { _ = server.Close() }, nil
}
