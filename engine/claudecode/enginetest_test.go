package claudecode

import (
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/enginetest"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/modeltest"
)

// What every engine owes, on the real CLI.
func TestEngine(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	enginetest.RunEngineTests(t, func(t *testing.T, m *modeltest.Model) agent.Engine { return realCLI(t, m) },
		enginetest.Exception{Test: "Context/Resources", Reason: "the CLI's tools for resources are tools of its own, which the model gets when BuiltinTools names them"},
		enginetest.Exception{Test: "Context/PromptCommand", Reason: "the CLI does not ask servers in this process for prompts"},
	)
}
