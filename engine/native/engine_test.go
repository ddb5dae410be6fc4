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

// TestCheckout runs what a hostile checkout tries. Requests to this machine, the trap, are made; all others go to the model.
func TestCheckout(t *testing.T) {
	enginetest.RunCheckoutTests(t, func(_ *testing.T, m *modeltest.Model) (agent.Engine, enginetest.ServeFunc) {
		direct := &http.Transport{DisableKeepAlives: true}
		client := &http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.URL.Hostname() == "127.0.0.1" {
				return direct.RoundTrip(r)
			}
			return m.Client().Transport.RoundTrip(r)
		})}
		return New(&Options{APIKey: "test", HTTPClient: client}), func(t *testing.T, h http.Handler) string {
			s := httptest.NewServer(h)
			t.Cleanup(s.Close)
			return s.URL
		}
	}, mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{childVariable: "1"}})
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
