package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/secret"
)

// noneIsError makes an error of a callback's answer that is none.
func noneIsError[T any](res *T, err error) (*T, error) {
	if err == nil && res == nil {
		return nil, errors.New("the host gave no answer")
	}
	return res, err
}

// fillDefaults fills in the defaults of the requested schema for what an
// accepted answer leaves out.
func fillDefaults(res *mcp.ElicitResult, schema any) *mcp.ElicitResult {
	if res.Action != "accept" || schema == nil {
		return res
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return res
	}
	var s struct {
		Properties map[string]struct {
			Default any `json:"default"`
		} `json:"properties"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return res
	}
	out := *res
	out.Content = map[string]any{}
	for k, p := range s.Properties {
		if p.Default != nil {
			out.Content[k] = p.Default
		}
	}
	for k, v := range res.Content {
		out.Content[k] = v
	}
	return &out
}

// answerInput answers the questions that a result asks instead of answering.
func (d *dialer) answerInput(ctx context.Context, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	answers := make(mcp.InputResponseMap, len(requests))
	for id, req := range requests {
		a, err := d.answerOne(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("answering the server's request for input: %w", err)
		}
		answers[id] = a
	}
	return answers, nil
}

func (d *dialer) answerOne(ctx context.Context, req mcp.InputRequest) (mcp.InputResponse, error) {
	switch p := req.(type) {
	case *mcp.ElicitParams:
		if d.handle.elicit == nil {
			return &mcp.ElicitResult{Action: "cancel"}, nil
		}
		return d.handle.elicit(ctx, p)
	case *mcp.CreateMessageWithToolsParams:
		if d.handle.sample != nil {
			return d.handle.sample(ctx, p)
		}
	case *mcp.ListRootsParams:
		return &mcp.ListRootsResult{Roots: d.roots()}, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("the host does not answer %T", req)}
}

// logFromServer passes a server's log message to the host's logger.
func logFromServer(log *slog.Logger, mask *secret.Masker, p *mcp.LoggingMessageParams) {
	say := log.Info
	switch p.Level {
	case "debug":
		say = log.Debug
	case "warning":
		say = log.Warn
	case "error", "critical", "alert", "emergency":
		say = log.Error
	}
	text, ok := p.Data.(string)
	if !ok {
		b, err := json.Marshal(p.Data)
		if err != nil {
			return
		}
		text = string(b)
	}
	const logLimit = 4096
	say(mask.Head([]byte(text), logLimit), "logger", mask.Head([]byte(p.Logger), logLimit))
}
