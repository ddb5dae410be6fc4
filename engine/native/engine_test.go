package native

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/enginetest"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

func TestEngine(t *testing.T) {
	enginetest.RunEngineTests(t, func(t *testing.T, m *modeltest.Model) agent.Engine { return testEngine(m) })
}

func TestFiles(t *testing.T) {
	enginetest.RunFileTests(t, func(_ *testing.T, m *modeltest.Model) (agent.Engine, enginetest.ServeFunc) {
		return testEngine(m), func(t *testing.T, h http.Handler) string {
			s := httptest.NewServer(h)
			t.Cleanup(s.Close)
			return s.URL
		}
	}, mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{childVariable: "1"}})
}
