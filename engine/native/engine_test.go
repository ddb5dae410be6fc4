package native

import (
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/enginetest"
	"github.com/tenon-sdk/tenon/modeltest"
)

func TestEngine(t *testing.T) {
	enginetest.RunEngineTests(t, func(t *testing.T, m *modeltest.Model) agent.Engine { return testEngine(m) })
}
