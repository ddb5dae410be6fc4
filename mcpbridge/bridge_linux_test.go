package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tenon-sdk/tenon/mcpbridge"
)

// No process is spawned and no socket opened for a server behind a bridge, and
// nothing is sent that was not asked for.
//
// B03 B04 B21
func TestBridgeTalksToNobodyElse(t *testing.T) {
	before := sockets(t)
	var sent atomic.Int32
	b := newBridge(t, bare(t, nil), &mcpbridge.Options{Send: func(context.Context, json.RawMessage) error {
		sent.Add(1)
		return nil
	}})
	handle(t, b, `{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	handle(t, b, `{"id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`)
	if n := sent.Load(); n != 0 {
		t.Errorf("a handshake and a call sent %d messages", n)
	}
	if after := sockets(t); after != before {
		t.Errorf("%d sockets are open, %d were before", after, before)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("this process has children: %v", err)
	}
}

// sockets is how many sockets this process has open.
func sockets(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range files {
		to, err := os.Readlink("/proc/self/fd/" + f.Name())
		if err == nil && strings.HasPrefix(to, "socket:") {
			count++
		}
	}
	return count
}
