package mcpbridge_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// Whatever comes in, what goes out is nothing or JSON-RPC: valid JSON, one of
// result and error, an error with code and text, the id of a request byte for
// byte. Nothing panics, nothing hangs.
func FuzzHandle(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(ar.Files[0].Data)) {
			f.Add([]byte(strings.TrimSpace(line)))
		}
	}
	server := full(f, &mcpserver.Options{Timeout: 20 * time.Millisecond})
	f.Fuzz(func(t *testing.T, raw []byte) {
		b := mcpbridge.New(server, &mcpbridge.Options{Send: func(_ context.Context, sent json.RawMessage) error {
			if !json.Valid(sent) {
				t.Errorf("sent no JSON: %s", sent)
			}
			return nil
		}})
		defer b.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reply, err := b.Handle(ctx, raw)
		if err != nil {
			if ctx.Err() == nil {
				t.Fatalf("Handle: %v", err)
			}
			return
		}
		if reply != nil {
			checkReply(t, raw, reply)
		}
	})
}

func checkReply(t *testing.T, raw, reply []byte) {
	t.Helper()
	if strings.HasPrefix(string(reply), "[") {
		var parts []json.RawMessage
		if err := json.Unmarshal(reply, &parts); err != nil || len(parts) == 0 {
			t.Fatalf("a batch of replies that is none: %s", reply)
		}
		for _, part := range parts {
			checkReply(t, nil, part)
		}
		return
	}
	var m struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
		Error   *struct {
			Code    *int64  `json:"code"`
			Message *string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(reply, &m); err != nil {
		t.Fatalf("no JSON: %s", reply)
	}
	switch {
	case m.JSONRPC != "2.0" || m.ID == nil:
		t.Fatalf("no JSON-RPC: %s", reply)
	case (m.Result == nil) == (m.Error == nil):
		t.Fatalf("not one of result and error: %s", reply)
	case m.Error != nil && (m.Error.Code == nil || m.Error.Message == nil):
		t.Fatalf("an error without code or text: %s", reply)
	}
}
