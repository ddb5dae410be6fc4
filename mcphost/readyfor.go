package mcphost

import (
	"context"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// ReadyFor waits like [Host.Ready] for the server that has the tool with this full name, if there may
// be one that is still pending: mcp__a__b__c is a tool of a or of a__b, and both are waited for.
// It returns at once if none is.
func (h *Host) ReadyFor(ctx context.Context, fullName string) error {
	var pending []string
	for _, st := range h.Status() {
		if st.Status == StatusPending && strings.HasPrefix(fullName, toolname.Server(st.Name)+toolname.Separator) {
			pending = append(pending, st.Name)
		}
	}
	if len(pending) == 0 { // Ready would wait for all
		return nil
	}
	return h.Ready(ctx, pending...)
}
