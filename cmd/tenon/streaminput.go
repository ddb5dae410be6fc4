package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/jsonl"
	"github.com/tenon-sdk/tenon/permission"
)

// A streamInput reads what is said in a run from standard input, one JSON object a line, in the form of the
// Claude Code CLI: user messages, and the control requests interrupt, set_model, set_permission_mode, mcp_status
// and get_context_usage. A line that cannot be used is told of, and the next one works.
type streamInput struct {
	p      *process
	client *agent.Client
	reply  func(v any) error   // writes to standard output, among the messages
	sent   func(agent.Content) // hears of each message that was sent
	// lines counts those that came, said those that were user messages.
	lines, said int
}

// An inputLine is one line, as far as it concerns us.
type inputLine struct {
	Type      string          `json:"type"`
	UUID      string          `json:"uuid"`
	Message   json.RawMessage `json:"message"`
	RequestID string          `json:"request_id"`
	Request   struct {
		Subtype string `json:"subtype"`
		Model   string `json:"model"`
		Mode    string `json:"mode"`
	} `json:"request"`
}

// read takes the lines in until the end of the input, or of ctx. Like readInput, it may leave one goroutine
// behind in a read that cannot be called off.
func (s *streamInput) read(ctx context.Context) error {
	type next struct {
		line jsonl.Line
		err  error
	}
	lines := make(chan next)
	go func() {
		r := jsonl.NewReader(s.p.in, 0)
		for {
			line, err := r.Next()
			select {
			case lines <- next{line, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case n := <-lines:
			switch {
			case errors.Is(n.err, io.EOF):
				return s.client.EndInput()
			case n.err != nil:
				return errors.Join(fmt.Errorf("reading standard input: %w", n.err), s.client.EndInput())
			}
			if err := s.take(ctx, n.line); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// take does what one line says.
func (s *streamInput) take(ctx context.Context, line jsonl.Line) error {
	s.lines++
	if line.Oversized() {
		s.complain("a line of %d bytes is too long and is left out", line.Size)
		return nil
	}
	var in inputLine
	if json.Unmarshal(line.Data, &in) != nil {
		s.complain("this line is no JSON object and is left out: %s", clipText(string(line.Data), 200))
		return nil //nolint:nilerr // it was told, and the next line may be fine
	}
	switch in.Type {
	case "user":
		s.user(ctx, in)
		return nil
	case "control_request":
		return s.control(ctx, in)
	case "keep_alive", "control_response", "control_cancel_request":
		return nil
	}
	s.complain("a line of type %q means nothing here and is left out", in.Type)
	return nil
}

// nothing is the error of a run that ended without a result because nobody asked anything; nil if somebody did.
func (s *streamInput) nothing() error {
	switch {
	case s.said > 0:
		return nil
	case s.lines == 0:
		return errors.New(`nothing was asked: standard input was empty; each line of it is to be a message like ` + exampleInput)
	}
	return fmt.Errorf("nothing was asked: %s came on standard input, and none is a message like %s", count(s.lines, "line"), exampleInput)
}

const exampleInput = `{"type":"user","message":{"role":"user","content":"…"}}`

func (s *streamInput) complain(format string, args ...any) {
	fmt.Fprintf(s.p.err, "tenon: standard input: %s\n", oneLine(fmt.Sprintf(format, args...)))
}

// user says something. What cannot be said is told of.
func (s *streamInput) user(ctx context.Context, in inputLine) {
	var m struct {
		Content agent.Content `json:"content"` // blocks, or a string
	}
	err := json.Unmarshal(in.Message, &m)
	var kind *json.UnmarshalTypeError
	switch {
	case len(in.Message) == 0:
		s.complain(`this message cannot be read and is left out: it has no "message"`)
		return
	case errors.As(err, &kind) && kind.Field == "":
		s.complain(`this message cannot be read and is left out: "message" is %s, want an object`, withArticle(kind.Value))
		return
	case errors.As(err, &kind):
		s.complain(`this message cannot be read and is left out: "content" is %s, want a string or a list of blocks`, withArticle(kind.Value))
		return
	case err != nil:
		s.complain("this message cannot be read and is left out: %v", err)
		return
	}
	err = s.client.SendInput(ctx, &agent.Input{Content: m.Content, UUID: in.UUID})
	if err == nil {
		s.said++
		s.sent(m.Content)
	}
	if err != nil && !errors.Is(err, agent.ErrClosed) && ctx.Err() == nil {
		s.complain("this message is left out: %s", message(err))
	}
}

// control answers a control request.
func (s *streamInput) control(ctx context.Context, in inputLine) error {
	var answer any = struct{}{}
	var err error
	switch in.Request.Subtype {
	case "interrupt":
		err = s.client.Interrupt(ctx)
	case "set_model":
		err = s.client.SetModel(ctx, in.Request.Model)
	case "set_permission_mode":
		err = s.client.SetPermissionMode(ctx, permission.Mode(in.Request.Mode))
		answer = map[string]string{"mode": in.Request.Mode}
	case "get_context_usage":
		answer, err = s.client.ContextUsage(ctx)
	case "mcp_status":
		answer, err = s.status(ctx)
	default:
		err = fmt.Errorf("unsupported control request subtype: %s", in.Request.Subtype)
	}
	type response struct {
		Subtype   string `json:"subtype"`
		RequestID string `json:"request_id"`
		Response  any    `json:"response,omitempty"`
		Error     string `json:"error,omitempty"`
	}
	r := response{Subtype: "success", RequestID: in.RequestID, Response: answer}
	if err != nil {
		r = response{Subtype: "error", RequestID: in.RequestID, Error: oneLine(err.Error())}
	}
	return s.reply(struct {
		Type     string   `json:"type"`
		Response response `json:"response"`
	}{"control_response", r})
}

func (s *streamInput) status(ctx context.Context) (any, error) {
	type tool struct {
		Name string `json:"name"`
	}
	type server struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Error  string `json:"error,omitempty"`
		Tools  []tool `json:"tools"`
	}
	status, err := s.client.MCPStatus(ctx)
	servers := make([]server, len(status))
	for i, st := range status {
		servers[i] = server{Name: st.Name, Status: string(st.Status), Error: reason(st), Tools: make([]tool, len(st.Tools))}
		for j, t := range st.Tools {
			servers[i].Tools[j].Name = t.Name
		}
	}
	return struct {
		Servers []server `json:"mcpServers"`
	}{servers}, err
}
