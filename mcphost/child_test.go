package mcphost

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

func plainText(r *mcpserver.Result) string {
	var parts []string
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// A rawMsg is what a raw server was sent.
type rawMsg struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (m rawMsg) tool() (name string, args string) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(m.Params, &p)
	return p.Name, string(p.Arguments)
}

// A rawServer speaks MCP by hand, so that it can get it wrong.
type rawServer struct {
	mu sync.Mutex
	w  io.Writer
	// tools is the JSON of the tool list.
	tools string
	// handle answers a message; it reports false to leave it to the default.
	handle func(s *rawServer, m rawMsg) bool
}

const echoTool = `{"name":"echo","description":"says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`

func (s *rawServer) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.w, format+"\n", args...)
}

func (s *rawServer) reply(id json.RawMessage, result string) {
	s.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (s *rawServer) fail(id json.RawMessage, code int, msg string) {
	s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, msg)
}

func (s *rawServer) say(id json.RawMessage, text string) {
	b, _ := json.Marshal(text)
	s.reply(id, `{"content":[{"type":"text","text":`+string(b)+`}]}`)
}

func (s *rawServer) serve(r io.Reader) {
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil {
			return
		}
		var m rawMsg
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		if s.handle == nil || !s.handle(s, m) {
			s.standard(m)
		}
	}
}

func (s *rawServer) standard(m rawMsg) {
	switch {
	case m.ID == nil || m.Method == "":
	case m.Method == "initialize":
		s.reply(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
	case m.Method == "tools/list":
		s.reply(m.ID, `{"tools":`+s.tools+`}`)
	case m.Method == "tools/call":
		name, args := m.tool()
		s.say(m.ID, name+" "+args)
	case m.Method == "ping":
		s.reply(m.ID, `{}`)
	default:
		s.fail(m.ID, -32601, "method not found: "+m.Method)
	}
}

// rawChild plays a raw server on stdin and stdout.
func rawChild(tools string, handle func(s *rawServer, m rawMsg) bool) {
	s := &rawServer{w: os.Stdout, tools: tools, handle: handle}
	s.serve(os.Stdin)
}

// libraryServer is a server of the official library.
func libraryServer() *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, &mcp.ServerOptions{Instructions: "use it well"})
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(srv, &mcp.Tool{Name: "echo", Description: "says it again", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "echo: " + in.Text}}}, nil, nil
		})
	mcp.AddTool(srv, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("it failed")
	})
	mcp.AddTool(srv, &mcp.Tool{Name: "big"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Bytes int `json:"bytes"`
	},
	) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", in.Bytes)}}}, nil, nil
	})
	mcp.AddTool(srv, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second): // the library's stateless sessions are not told that the client left
		}
		return nil, nil, fmt.Errorf("nobody waits")
	})
	srv.AddResource(&mcp.Resource{URI: "mem://a", Name: "a", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://a", Text: "content of a"}}}, nil
		})
	srv.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem://{x}", Name: "x"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		})
	srv.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who"}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello " + req.Params.Arguments["who"]}}}}, nil
		})
	return srv
}

// children are the programs that this test binary plays.
var children = map[string]func(){
	"library": func() { _ = libraryServer().Run(context.Background(), &mcp.StdioTransport{}) },
	"echo":    func() { rawChild("["+echoTool+"]", nil) },
	"exit3":   func() { fmt.Fprintln(os.Stderr, "missing KEY", os.Getenv("MY_SECRET")); os.Exit(3) },
	"silent":  func() { fmt.Fprintln(os.Stderr, "thinking"); _, _ = io.Copy(io.Discard, os.Stdin) },
	"garbage": func() {
		for i := range 10 {
			fmt.Printf("line %d of a program that is no MCP server\n", i)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"deaf": func() {
		signal.Ignore(syscall.SIGTERM)
		rawChild("["+echoTool+"]", nil)
		select {}
	},
	"wrapper": func() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVar+"=deaf")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		_ = cmd.Run()
	},
	"noisy":     noisyChild,
	"crash":     crashChild,
	"strange":   strangeChild,
	"huge":      hugeChild,
	"ids":       idsChild,
	"burst":     burstChild,
	"cancelled": cancelledChild,
	"progress":  progressChild,
	"flood":     floodChild,
	"proberage": func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if m.Method == "server/discover" {
				fmt.Fprintln(os.Stderr, "fatal: initialize expected")
				os.Exit(1)
			}
			return false
		})
	},
	"probedeaf": func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool { return m.Method == "server/discover" })
	},
	"badlist": func() {
		rawChild("[]", func(s *rawServer, m rawMsg) bool {
			if m.Method == "tools/list" {
				s.reply(m.ID, `{"tools":"none"}`)
				return true
			}
			return false
		})
	},
	"pages": pagesChild,
	// A server of the official library, so slow to start that the probe is given up.
	"slowlibrary": func() {
		<-time.After(2500 * time.Millisecond)
		_ = libraryServer().Run(context.Background(), inOrder{})
	},
	// where says where it runs, and with what.
	"where": func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if m.Method != "tools/call" {
				return false
			}
			dir, _ := os.Getwd()
			file, _ := os.ReadFile(os.Args[len(os.Args)-1])
			s.say(m.ID, fmt.Sprintf("dir=%s file=%s own=%s parent=%s clash=%s home=%v", dir, file,
				os.Getenv("OWN"), os.Getenv("MCPHOST_TEST_PARENTS"), os.Getenv("MCPHOST_TEST_CLASH"), os.Getenv("HOME") != ""))
			return true
		})
	},
	"old": func() {
		initReply(`{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
	},
	"1999": func() {
		initReply(`{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`)
	},
	"initerror": func() {
		rawChild("[]", func(s *rawServer, m rawMsg) bool {
			if m.Method == "initialize" {
				s.fail(m.ID, -32000, "no licence for "+os.Getenv("MY_SECRET"))
				return true
			}
			return false
		})
	},
}

// inOrder is stdio for a server that answers its first message before it reads the second. The library
// may do both at once, and then it depends on the machine what it makes of a handshake after a probe.
type inOrder struct{}

func (inOrder) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := (&mcp.StdioTransport{}).Connect(ctx)
	return &inOrderConn{Connection: c, answered: make(chan struct{})}, err
}

type inOrderConn struct {
	mcp.Connection
	reads    int // by one goroutine
	answered chan struct{}
	once     sync.Once
}

func (c *inOrderConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if c.reads++; c.reads == 2 {
		select {
		case <-c.answered:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return c.Connection.Read(ctx)
}

func (c *inOrderConn) Write(ctx context.Context, m jsonrpc.Message) error {
	defer c.once.Do(func() { close(c.answered) })
	return c.Connection.Write(ctx, m)
}

func initReply(result string) {
	rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
		if m.Method == "initialize" {
			s.reply(m.ID, result)
			return true
		}
		return false
	})
}

// noisyChild writes on stdout what is no message, in all forms.
func noisyChild() {
	fmt.Println("Welcome to the server!")
	fmt.Print("\x1b[32m╭──────────╮\x1b[0m\n\n   \n")
	fmt.Println(`{"level":"info","msg":"a log line in JSON"}`)
	fmt.Println(`[1,2,3]`)
	fmt.Println("\xff\xfe not UTF-8")
	rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
		fmt.Println("handling", m.Method)
		if m.Method == "tools/call" {
			name, args := m.tool()
			b, _ := json.Marshal(name + " " + args)
			// Without jsonrpc, with a carriage return and NULs around it.
			fmt.Printf("\x00{\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%s}]}}\r\n", m.ID, b)
			fmt.Println("done")
			return true
		}
		return false
	})
}

// crashChild dies when its tool crash is called. It counts its starts in a file.
func crashChild() {
	f, err := os.OpenFile(os.Getenv("STARTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, os.Getpid())
		f.Close()
	}
	tools := `[` + echoTool + `,{"name":"crash","inputSchema":{"type":"object"}},{"name":"crash_read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"crash_once","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}},{"name":"hang","inputSchema":{"type":"object"}}]`
	rawChild(tools, func(s *rawServer, m rawMsg) bool {
		if m.Method != "tools/call" {
			return false
		}
		switch name, _ := m.tool(); name {
		case "crash", "crash_read":
			fmt.Fprintln(os.Stderr, "assertion failed: MY_TOKEN="+os.Getenv("MY_TOKEN"))
			os.Exit(7)
		case "crash_once":
			starts, _ := os.ReadFile(os.Getenv("STARTS"))
			if strings.Count(string(starts), "\n") < 2 {
				os.Exit(7)
			}
		case "hang":
			fmt.Fprintln(os.Stderr, "hanging")
			return true
		}
		return false
	})
}

// strangeChild lists tools good and bad, and answers with strange results.
func strangeChild() {
	tools := `[
		` + echoTool + `,
		null, 7, "tool", [],
		{"description":"no name","inputSchema":{"type":"object"}},
		{"name":7,"inputSchema":{"type":"object"}},
		{"name":"","inputSchema":{"type":"object"}},
		{"name":"no_schema"},
		{"name":"null_schema","inputSchema":null},
		{"name":"true_schema","inputSchema":true},
		{"name":"text_schema","inputSchema":"object"},
		{"name":"array_schema","inputSchema":[]},
		{"name":"bad_extras","inputSchema":{"type":"object"},"title":7,"description":{},"annotations":"yes","icons":3,"_meta":[],"outputSchema":5},
		{"name":"loop","inputSchema":{"$ref":"#"},"outputSchema":{"$ref":"#"}},
		{"name":"echo","inputSchema":{"type":"object"},"description":"the second of this name"},
		{"name":"dup.x","inputSchema":{"type":"object"}},
		{"name":"dup_x","inputSchema":{"type":"object"}},
		{"name":"meta","inputSchema":{"type":"object"},"_meta":{"anthropic/searchHint":"find me","anthropic/maxResultSizeChars":200000,"anthropic/alwaysLoad":true},"annotations":{"title":"Meta","readOnlyHint":true,"idempotentHint":true}}
	]`
	results := map[string]string{
		"unknown_block": `{"content":[{"type":"text","text":"before"},{"type":"hologram","data":"x"},{"type":"text","text":"after"}]}`,
		"number_text":   `{"content":[{"type":"text","text":42}]}`,
		"bad_image":     `{"content":[{"type":"image","data":"%%%","mimeType":"image/png"},{"type":"text","text":"still here"}]}`,
		"null_block":    `{"content":[null,{"type":"text","text":"ok"}]}`,
		"no_content":    `{}`,
		"null_content":  `{"content":null,"isError":null}`,
		"bare_object":   `{"content":{"type":"text","text":"alone"}}`,
		"bare_text":     `{"content":"just text"}`,
		"legacy":        `{"toolResult":{"a":1}}`,
		"structured":    `{"content":[{"type":"text","text":"a is 1"}],"structuredContent":{"a":1},"_meta":{"k":"v"},"other":true}`,
		"array":         `[1,2]`,
		"null":          `null`,
		"text":          `"hello"`,
		"error":         `{"content":[{"type":"text","text":"it went wrong"}],"isError":true}`,
		"surrogate":     `{"content":[{"type":"text","text":"a\ud800b"}]}`,
	}
	rawChild(strings.ReplaceAll(tools, "\n", ""), func(s *rawServer, m rawMsg) bool {
		if m.Method != "tools/call" {
			return false
		}
		_, args := m.tool()
		var in struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal([]byte(args), &in)
		switch {
		case in.Text == "no_result":
			s.line(`{"jsonrpc":"2.0","id":%s}`, m.ID)
		case in.Text == "rpc_error":
			s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad arguments","data":{"why":"x"}}}`, m.ID)
		case in.Text == "rpc_error_text":
			s.line(`{"jsonrpc":"2.0","id":%s,"error":"plain text"}`, m.ID)
		case in.Text == "closing_code": // the library takes this code for its own
			s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32003,"message":"quota"}}`, m.ID)
		case in.Text == "bad_json":
			s.line(`{"jsonrpc":"2.0","id":%s,"result":{"content":[}}`, m.ID)
		case in.Text == "not_utf8":
			s.line("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xffb\"}]}}", m.ID)
		case results[in.Text] != "":
			s.reply(m.ID, results[in.Text])
		default:
			return false
		}
		return true
	})
}

// hugeChild answers with results of any size, its id first or last.
func hugeChild() {
	rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
		if m.Method != "tools/call" {
			return false
		}
		_, args := m.tool()
		var in struct {
			Bytes int    `json:"bytes"`
			Order string `json:"order"`
		}
		_ = json.Unmarshal([]byte(args), &in)
		if in.Bytes == 0 {
			return false
		}
		text := strings.Repeat("x", in.Bytes)
		result := `{"content":[{"type":"text","text":"` + text + `"}]}`
		switch in.Order {
		case "last":
			s.line(`{"result":%s,"jsonrpc":"2.0","id":%s}`, result, m.ID)
		case "middle":
			s.line(`{"result":{"x":1},"x":"%s","id":%s,"y":"%s"}`, text, m.ID, text)
		default:
			s.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
		return true
	})
}

// idsChild plays with ids and sends requests of its own.
func idsChild() {
	var held []rawMsg
	tools := `[` + echoTool + `,{"name":"hold","inputSchema":{"type":"object"}}]`
	rawChild(tools, func(s *rawServer, m rawMsg) bool {
		switch {
		case m.Method == "ping":
			s.fail(m.ID, -32601, "no ping here")
			return true
		case m.Method == "notifications/initialized":
			s.line(`{"jsonrpc":"2.0","id":"srv-1","method":"ping"}`)
			s.line(`{"jsonrpc":"2.0","id":77,"method":"roots/list"}`)
			s.line(`{"jsonrpc":"2.0","id":"srv-2","method":"no/such"}`)
			s.line(`{"jsonrpc":"2.0","id":999999,"result":{}}`)
			s.line(`{"jsonrpc":"2.0","id":"nobody","result":{}}`)
			s.line(`{"jsonrpc":"2.0","method":"notifications/whatever"}`)
			return true
		case m.Method == "" && m.ID != nil: // a reply to ours
			fmt.Fprintf(os.Stderr, "reply to %s: %s%s\n", m.ID, m.Result, m.Error)
			return true
		case m.Method == "tools/call":
			held = append(held, m)
			if len(held) < 3 {
				return true
			}
			for i := len(held) - 1; i >= 0; i-- { // out of order, ids as strings, answers doubled
				_, args := held[i].tool()
				id := fmt.Sprintf(`"%s"`, held[i].ID)
				s.say(json.RawMessage(id), args)
				s.say(held[i].ID, "doubled")
			}
			held = nil
			return true
		}
		return false
	})
}

// burstChild changes its tools and says so many times while a call runs.
func burstChild() {
	lists := 0
	changed := false
	var running rawMsg
	rawChild("[]", func(s *rawServer, m rawMsg) bool {
		switch {
		case m.Method == "tools/list":
			lists++
			third := "removed"
			if changed {
				third = "added"
			}
			s.reply(m.ID, `{"tools":[`+echoTool+`,{"name":"change","inputSchema":{"type":"object"}},{"name":"lists","inputSchema":{"type":"object"}},{"name":"`+third+`","inputSchema":{"type":"object"}}]}`)
			return true
		case m.Method != "tools/call":
			return false
		}
		switch name, _ := m.tool(); name {
		case "change":
			running, changed = m, true
			for range 100 {
				s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
			return true
		case "lists":
			if running.ID != nil {
				s.say(running.ID, "changed")
				running = rawMsg{}
			}
			s.say(m.ID, fmt.Sprint(lists))
			return true
		}
		return false
	})
}

// cancelledChild holds calls and tells on stderr what is cancelled.
func cancelledChild() {
	rawChild("["+echoTool+`,{"name":"hold","inputSchema":{"type":"object"}}]`, func(s *rawServer, m rawMsg) bool {
		switch {
		case os.Getenv("HOLD") == "initialize" && m.Method == "initialize":
			return true
		case m.Method == "notifications/cancelled":
			fmt.Fprintf(os.Stderr, "cancelled %s\n", m.Params)
			return true
		case m.Method == "tools/call":
			if name, _ := m.tool(); name == "hold" {
				fmt.Fprintf(os.Stderr, "holding %s\n", m.ID)
				return true
			}
		}
		return false
	})
}

// progressChild reports progress on a call: every PERIOD, TIMES times.
func progressChild() {
	period, _ := time.ParseDuration(os.Getenv("PERIOD"))
	var times int
	_, _ = fmt.Sscan(os.Getenv("TIMES"), &times)
	rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
		if m.Method != "tools/call" {
			return false
		}
		var p struct {
			Meta struct {
				Token json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
		_ = json.Unmarshal(m.Params, &p)
		go func() {
			for i := range times {
				<-time.After(period)
				s.line(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d,"message":"step"}}`, p.Meta.Token, i+1, times)
			}
			if times > 0 {
				s.say(m.ID, "token "+string(p.Meta.Token))
			}
		}()
		return true
	})
}

// floodChild floods stdout, stderr and the host with requests around each answer.
func floodChild() {
	rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
		if m.Method != "tools/call" {
			return false
		}
		for i := range 2000 {
			s.line("noise %d", i)
			fmt.Fprintf(os.Stderr, "log %d %s\n", i, strings.Repeat("x", 100))
			s.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"log %d"}}`, i)
			s.line(`{"jsonrpc":"2.0","id":"f%d","method":"ping"}`, i)
		}
		return false
	})
}

// pagesChild lists its tools in pages: seven tools in pages of three, then the
// MODE: end, loop (the cursor comes again) or endless.
func pagesChild() {
	rawChild("[]", func(s *rawServer, m rawMsg) bool {
		if m.Method != "tools/list" {
			return false
		}
		var p struct {
			Cursor string `json:"cursor"`
		}
		_ = json.Unmarshal(m.Params, &p)
		var page int
		_, _ = fmt.Sscan(p.Cursor, &page)
		var tools []string
		for i := page * 3; i < page*3+3 && (i < 7 || os.Getenv("MODE") == "endless"); i++ {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
		}
		next := fmt.Sprintf(`,"nextCursor":"%d"`, page+1)
		if page == 2 {
			switch os.Getenv("MODE") {
			case "loop":
				next = `,"nextCursor":"1"`
			case "end":
				next = ""
			}
		}
		s.reply(m.ID, `{"tools":[`+strings.Join(tools, ",")+`]`+next+`}`)
		return true
	})
}
