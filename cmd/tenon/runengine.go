package main

import (
	"fmt"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/modeltest"
)

// engine returns the engine of --engine and a function that frees it. It may change the options.
func (f *runFlags) engine(p *process, pr *progress, o *agent.Options) (agent.Engine, func(), error) {
	if f.engineName == engineClaude {
		return f.claudeCode(p, pr, o)
	}
	n := native.Options{ResultsDir: p.resultsDir()}
	if f.offline {
		n.APIKey, n.BaseURL, n.HTTPClient = "offline", "http://model.invalid", modeltest.Offline().Client()
		n.DefaultModel, n.MaxRetries = "offline", native.NoRetries
	}
	return native.New(&n), func() {}, nil
}

// claudeCode returns the engine on the Claude Code CLI. The CLI inherits the environment of this
// process; the options have what differs from it.
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
