package native

import (
	"errors"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
)

// A session that cannot be resumed is not begun anew in silence.
func TestResumeIsRefused(t *testing.T) {
	_, err := agent.Open(t.Context(), New(nil), &agent.Options{Resume: agent.Resume{Latest: true}})
	var ue *agent.UnsupportedError
	if !errors.As(err, &ue) || len(ue.Fields) != 1 || ue.Fields[0] != "Resume" {
		t.Errorf("got %v, want an UnsupportedError that names Resume", err)
	}
}
