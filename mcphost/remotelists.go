package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/toolresult"
)

// listElements requests all pages of a list, whose results have the elements under key. Elements that cannot be read are left
// out, and an endless list is cut; the log says so.
func listElements[T any](ctx context.Context, l *remoteLink, method, key string, params func(cursor string) mcp.Params) ([]*T, error) {
	var all []*T
	count := 0
	err := l.pages(ctx, method, params, func(raw json.RawMessage) (string, error) {
		page, err := pageOf(raw, key)
		if err == nil && page.elements == nil {
			err = fmt.Errorf("the result holds no array of %s", key)
		}
		if err != nil {
			return "", err
		}
		count = listed(page.elements, count, func(_ int, raw json.RawMessage) {
			var v *T
			if err := unmarshal(raw, &v); err != nil || v == nil {
				const shown = 300
				l.limited.Warn("element of a list left out: it cannot be read", "list", key, "element", l.mask.Head(raw, shown))
				return
			}
			all = append(all, v)
		})
		if count > maxListed {
			return page.next, errTooMany
		}
		return page.next, nil
	})
	if transport.IsCode(err, jsonrpc.CodeMethodNotFound) {
		return nil, nil // the server has none
	}
	if errors.As(err, new(*endlessError)) && len(all) > 0 {
		l.log.Warn("list of the server cut", "used", len(all), "error", err)
		err = nil
	}
	return all, err
}

func (l *remoteLink) listResources(ctx context.Context) ([]*mcp.Resource, error) {
	if l.Info().Capabilities.Resources == nil {
		return nil, nil
	}
	return listElements[mcp.Resource](ctx, l, "resources/list", "resources",
		func(cursor string) mcp.Params { return &mcp.ListResourcesParams{Cursor: cursor} })
}

func (l *remoteLink) listResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error) {
	if l.Info().Capabilities.Resources == nil {
		return nil, nil
	}
	return listElements[mcp.ResourceTemplate](ctx, l, "resources/templates/list", "resourceTemplates",
		func(cursor string) mcp.Params { return &mcp.ListResourceTemplatesParams{Cursor: cursor} })
}

func (l *remoteLink) listPrompts(ctx context.Context) ([]*mcp.Prompt, error) {
	if l.Info().Capabilities.Prompts == nil {
		return nil, nil
	}
	return listElements[mcp.Prompt](ctx, l, "prompts/list", "prompts",
		func(cursor string) mcp.Params { return &mcp.ListPromptsParams{Cursor: cursor} })
}

func decoded[T any](raw json.RawMessage) (*T, error) {
	v := new(T)
	if err := unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("the result cannot be read: %w", err)
	}
	return v, nil
}

// answered makes a request until its result asks for no more input.
func answered[T any](ctx context.Context, l *remoteLink, method string, params func(answers mcp.InputResponseMap, state string) mcp.Params) (*T, error) {
	var answers mcp.InputResponseMap
	state := ""
	for range maxInputRequests {
		raw, err := l.Do(ctx, &transport.Request{Method: method, Params: params(answers, state)})
		if err != nil {
			return nil, err
		}
		requests, next, err := toolresult.DecodeInput(raw)
		if err != nil {
			return nil, err
		}
		if len(requests) == 0 && next == "" {
			return decoded[T](raw)
		}
		if answers, err = l.answer(ctx, requests); err != nil {
			return nil, err
		}
		state = next
	}
	return nil, errInputRequests
}

func (l *remoteLink) readResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return answered[mcp.ReadResourceResult](ctx, l, "resources/read", func(answers mcp.InputResponseMap, state string) mcp.Params {
		return &mcp.ReadResourceParams{URI: uri, InputResponses: answers, RequestState: state}
	})
}

func (l *remoteLink) getPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return answered[mcp.GetPromptResult](ctx, l, "prompts/get", func(answers mcp.InputResponseMap, state string) mcp.Params {
		return &mcp.GetPromptParams{Name: name, Arguments: args, InputResponses: answers, RequestState: state}
	})
}

func (l *remoteLink) complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	params := *p // which gets a _meta of its own
	raw, err := l.Do(ctx, &transport.Request{Method: "completion/complete", Params: &params})
	if err != nil {
		return nil, err
	}
	return decoded[mcp.CompleteResult](raw)
}

func (l *remoteLink) subscribe(ctx context.Context, uri string) error { return l.Subscribe(ctx, uri) }

func (l *remoteLink) unsubscribe(ctx context.Context, uri string) error {
	return l.Unsubscribe(ctx, uri)
}
func (l *remoteLink) ping(ctx context.Context) error { return l.Ping(ctx) }

func (l *remoteLink) setLevel(ctx context.Context, level mcp.LoggingLevel) error {
	_, err := l.Do(ctx, &transport.Request{Method: "logging/setLevel", Params: &mcp.SetLoggingLevelParams{Level: level}})
	return err
}
