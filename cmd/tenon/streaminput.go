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

// A streamInput reads user messages and control requests from standard input, one JSON object a
// line, in the form of the Claude Code CLI. It reports a line that cannot be used and goes on.
type streamInput struct {
	view   *view
	client *agent.Client
	// lines counts the lines, messages the user messages that were sent.
	lines, messages int
}

// An inputLine is a line of the input.
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

// read handles the lines until the end of the input, or of ctx.
func (s *streamInput) read(ctx context.Context) error {
	r := jsonl.NewReader(s.view.p.in, 0)
	for {
		line, err := await(ctx, r.Next)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the input is not needed any more
		case errors.Is(err, io.EOF):
			return s.client.EndInput()
		case err != nil:
			return errors.Join(fmt.Errorf("reading standard input: %w", err), s.client.EndInput())
		}
		if err := s.take(ctx, line); err != nil {
			return err
		}
	}
}

// take handles a line.
func (s *streamInput) take(ctx context.Context, line jsonl.Line) error {
	s.lines++
	if line.Oversized() {
		s.complain("a line of %d bytes is too long and is left out", line.Size)
		return nil
	}
	var in inputLine
	if json.Unmarshal(line.Data, &in) != nil {
		s.complain("this line is no JSON object and is left out: %s", clipText(string(line.Data), 200))
		return nil //nolint:nilerr // it is reported, and the next line may be fine
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

// nothing returns the error of a run that ended without a result because no message came, or nil.
func (s *streamInput) nothing() error {
	switch {
	case s.messages > 0:
		return nil
	case s.lines == 0:
		return errors.New(`nothing was asked: standard input was empty; each line of it is to be a message like ` + exampleInput)
	}
	return fmt.Errorf("nothing was asked: %s came on standard input, and none is a message like %s", count(s.lines, "line"), exampleInput)
}

const exampleInput = `{"type":"user","message":{"role":"user","content":"…"}}`

func (s *streamInput) complain(format string, args ...any) {
	s.view.line("tenon: standard input:", oneLine(fmt.Sprintf(format, args...)))
}

// user sends a message, or reports why it cannot be sent.
func (s *streamInput) user(ctx context.Context, in inputLine) {
	var m struct {
		Content agent.Content `json:"content"` // blocks, or a string
	}
	why := ""
	err := json.Unmarshal(in.Message, &m)
	kind, wrongType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case len(in.Message) == 0:
		why = `it has no "message"`
	case wrongType && kind.Field == "":
		why = fmt.Sprintf(`"message" is %s, want an object`, withArticle(kind.Value))
	case wrongType:
		why = fmt.Sprintf(`"content" is %s, want a string or a list of blocks`, withArticle(kind.Value))
	case err != nil:
		why = err.Error()
	}
	if why != "" {
		s.complain("this message cannot be read and is left out: %s", why)
		return
	}
	switch err := s.client.SendInput(ctx, &agent.Input{Content: m.Content, UUID: in.UUID}); {
	case err == nil:
		s.messages++
		s.view.expect(m.Content.Text())
	case !errors.Is(err, agent.ErrClosed) && ctx.Err() == nil:
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
	s.view.progress.above(func() {
		err = writeLine(s.view.p.out, struct {
			Type     string   `json:"type"`
			Response response `json:"response"`
		}{"control_response", r})
	})
	return err
}

// status returns the servers in the form of the Claude Code CLI.
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
		servers[i] = server{st.Name, string(st.Status), reason(st), make([]tool, len(st.Tools))}
		for j, t := range st.Tools {
			servers[i].Tools[j].Name = t.Name
		}
	}
	return map[string][]server{"mcpServers": servers}, err
}
