package mcpbridge_test

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
)

// callLine is a tools/call as the Claude Code CLI sends it.
func callLine(id int) json.RawMessage {
	return json.RawMessage(`{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},` +
		`"_meta":{"claudecode/toolUseId":"toolu_01ABCDEF","progressToken":` + strconv.Itoa(id) + `}}}`)
}

// One JSON-RPC line through the bridge: decoded, validated, run, encoded.
func BenchmarkBridgeCall(b *testing.B) {
	bridge := mcpbridge.New(bare(b, nil), nil)
	defer bridge.Close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		reply, err := bridge.Handle(b.Context(), callLine(i+1))
		if err != nil || !strings.Contains(string(reply), `"sum":3`) {
			b.Fatalf("%s, %v", reply, err)
		}
	}
}

// The same line through the official library's server behind a transport that
// hands it one message and takes one back.
func BenchmarkLibraryOneMessage(b *testing.B) {
	server := mcp.NewServer(&mcp.Implementation{Name: "calc", Version: "1.2.3"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Add two numbers"},
		func(_ context.Context, _ *mcp.CallToolRequest, in sumIn) (*mcp.CallToolResult, sumOut, error) {
			return nil, sumOut{in.A + in.B}, nil
		})
	t := &oneMessage{in: make(chan jsonrpc.Message), out: make(chan json.RawMessage), done: make(chan struct{})}
	session, err := server.Connect(b.Context(), t, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Wait()
	defer t.Close()
	t.roundTrip(b, json.RawMessage(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if reply := t.roundTrip(b, callLine(i+1)); !strings.Contains(string(reply), `"sum":3`) {
			b.Fatalf("%s", reply)
		}
	}
}

// Sixteen callers at once on one bridge.
func BenchmarkBridgeParallel(b *testing.B) {
	bridge := mcpbridge.New(bare(b, nil), nil)
	defer bridge.Close()
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 1; pb.Next(); i++ {
			if reply, err := bridge.Handle(b.Context(), callLine(i)); err != nil || reply == nil {
				b.Fatalf("%s, %v", reply, err)
			}
		}
	})
}

// A oneMessage is a transport of the library for one message at a time.
type oneMessage struct {
	in   chan jsonrpc.Message
	out  chan json.RawMessage
	done chan struct{}
}

func (t *oneMessage) roundTrip(b *testing.B, raw json.RawMessage) json.RawMessage {
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		b.Fatal(err)
	}
	t.in <- m
	return <-t.out
}

func (t *oneMessage) Connect(context.Context) (mcp.Connection, error) { return t, nil }
func (t *oneMessage) SessionID() string                               { return "" }

func (t *oneMessage) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-t.in:
		return m, nil
	case <-t.done:
		return nil, io.EOF
	}
}

func (t *oneMessage) Write(_ context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err == nil {
		t.out <- raw
	}
	return err
}

func (t *oneMessage) Close() error {
	select {
	case <-t.done:
	default:
		close(t.done)
	}
	return nil
}
