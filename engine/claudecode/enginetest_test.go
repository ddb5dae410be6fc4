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
	enginetest.RunEngineTests(t, func(t *testing.T, m *modeltest.Model) agent.Engine { return realCLI(t, m) })
}
