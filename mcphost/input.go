package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// handlersFor are what the links of a server tell the host.
func (h *Host) handlersFor(name string, c *conn) handlers {
	hs := handlers{
		listChanged: func(method string) {
			if method == mcpserver.MethodToolListChanged {
				c.toolsChanged()
				return
			}
			ev := Event{Server: name, Status: StatusConnected, Time: time.Now()}
			ev.Resources = method == mcpserver.MethodResourceListChanged
			ev.Prompts = method == mcpserver.MethodPromptListChanged
			h.revision.Add(1)
			h.publish(ev)
		},
		resourceUpdated: func(uri string) {
			if c.updates != nil {
				c.updates.put(uri)
			}
		},
		log: func(p *mcp.LoggingMessageParams) { logFromServer(c.log, c.dialer.mask, p) },
	}
	if ask := h.opts.Elicit; ask != nil {
		hs.elicit = func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			res, err := noneIsError(callback.Detached(ctx, c.dialer.limited, "Elicit", func() (*mcp.ElicitResult, error) { return ask(ctx, name, p) }))
			if err != nil {
				return nil, err
			}
			return withDefaults(res, p.RequestedSchema), nil
		}
	}
	if ask := h.opts.Sample; ask != nil {
		hs.sample = func(ctx context.Context, p *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error) {
			return noneIsError(callback.Detached(ctx, c.dialer.limited, "Sample", func() (*mcp.CreateMessageWithToolsResult, error) { return ask(ctx, name, p) }))
		}
	}
	return hs
}

// noneIsError makes an error of a callback's answer that is none.
func noneIsError[T any](res *T, err error) (*T, error) {
	if err == nil && res == nil {
		return nil, errors.New("the host gave no answer")
	}
	return res, err
}

// withDefaults fills in the defaults of the requested schema for what an
// accepted answer leaves out.
func withDefaults(res *mcp.ElicitResult, schema any) *mcp.ElicitResult {
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
