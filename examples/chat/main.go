// Command chat is a chat service over HTTP: one agent.Client a conversation, answers streamed as server-sent events,
// one turn of a conversation at a time, conversations closed when nobody has used them for a while. With -keep
// they are kept as JSON lines, and go on when somebody comes back, also after the program was started anew.
//
//	go run ./examples/chat -addr localhost:8080 -keep conversations
//	curl -N localhost:8080/chat -d '{"conversation": "ada", "text": "@mcp__clock__now {}"}'
//
// Without ANTHROPIC_API_KEY it runs on the offline model, which makes the calls that a text spells out.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// grace is how long running turns get to finish when the program is told to end.
const grace = 10 * time.Second

func main() {
	addr := flag.String("addr", "localhost:8080", "serve at this `address`")
	idle := flag.Duration("idle", 15*time.Minute, "close a conversation that was not used for this long")
	keep := flag.String("keep", "", "keep conversations in this `directory`, which has to be there; empty: nowhere")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *idle, *keep, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, then lets running turns finish for a while and closes everything.
func run(ctx context.Context, addr string, idle time.Duration, keep string, stdout io.Writer) error {
	engine := native.New(nil)
	if os.Getenv("ANTHROPIC_API_KEY") == "" {
		fmt.Fprintln(stdout, "No ANTHROPIC_API_KEY is set, so this runs on the offline model: it makes the calls that a text spells out.")
		engine = native.New(&native.Options{APIKey: "none", HTTPClient: modeltest.Offline().Client()})
	}
	chats := newConversations(engine, options(), idle, 1000)
	chats.kept = store{dir: keep}
	defer chats.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /chat", handler(chats))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer srv.Close()
	fmt.Fprintf(stdout, "serving at http://%s/chat\n", listener.Addr())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(ending); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	chats.Close() // ends the turns that are still running, and with them their requests
	return srv.Close()
}

// options are those of every conversation: a clock, which anyone may read.
func options() *agent.Options {
	clock := mcpserver.New("clock", nil)
	mcpserver.MustAddTool(clock, &mcpserver.Tool{Name: "now", Description: "Tell the time", ReadOnly: true},
		func(context.Context, struct{}) (string, error) { return time.Now().UTC().Format(time.RFC3339), nil })
	return &agent.Options{
		// A service reads nothing of the machine that it runs on: by default the project's files (.mcp.json and
		// .claude/settings.json of the working directory) would count for everybody who chats.
		SettingSources:         []agent.SettingSource{},
		SystemPrompt:           "You are a friendly assistant. Answer in one paragraph.",
		MCPServers:             map[string]mcphost.ServerConfig{"clock": mcphost.InProcess(clock)},
		AllowedTools:           []string{"mcp__clock__now"},
		IncludePartialMessages: true, // text as it is written, not block by block
		ReplayUserMessages:     true, // what is kept of a conversation is all of it
		MaxTurns:               20,
	}
}

// handler answers POST /chat {"conversation": "any id", "text": "..."} with the events of one turn.
func handler(chats *conversations) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Conversation, Text string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil || in.Conversation == "" || in.Text == "" {
			http.Error(w, `want {"conversation": "id", "text": "what to say"}`, http.StatusBadRequest)
			return
		}
		c, err := chats.take(r.Context(), in.Conversation)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer chats.put(c)
		w.Header().Set("Content-Type", "text/event-stream")
		c.turn(r.Context(), in.Text, func(event string, data any) {
			encoded, _ := json.Marshal(data) // texts and numbers: it cannot fail
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, encoded)
			_ = http.NewResponseController(w).Flush() // a client that has gone ends r.Context
		})
	}
}
