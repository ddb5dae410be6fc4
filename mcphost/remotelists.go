package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/toolresult"
)

// elements reads the elements of one page of a list, before which others were listed. Those that cannot be read
// are left out, with a line in the log.
func elements[T any](l *remoteLink, raw json.RawMessage, key string, before int, add func(*T)) (next string, count int, err error) {
	page, err := pageOf(raw, key)
	if err == nil && page.elements == nil {
		err = fmt.Errorf("the result holds no array of %s", key)
	}
	if err != nil {
		return "", before, err
	}
	count = listed(page.elements, before, func(_ int, raw json.RawMessage) {
		var v *T
		if err := unmarshal(raw, &v); err != nil || v == nil {
			l.wire.often.Warn("element of a list left out: it cannot be read", "list", key, "element", l.wire.mask.Head(raw, noiseLine))
			return
		}
		add(v)
	})
	if count > maxListed {
		return page.next, count, errTooMany
	}
	return page.next, count, nil
}

// list lists with get, whose pages have their elements under key. A list without
// an end is used as far as it was read, with a line in the log.
func list[T any](ctx context.Context, l *remoteLink, method, key string, get func(ctx context.Context, cursor string) error) ([]*T, error) {
	var all []*T
	count := 0
	err := l.pages(ctx, method, get, func(raw json.RawMessage) (next string, err error) {
		next, count, err = elements(l, raw, key, count, func(v *T) { all = append(all, v) })
		return next, err
	})
	if isCode(err, jsonrpc.CodeMethodNotFound) {
		return nil, nil // the server has none
	}
	if errors.As(err, new(*endlessError)) && len(all) > 0 {
		l.log.Warn("list of the server cut", "used", len(all), "error", err)
		err = nil
	}
	return all, err
}

func (l *remoteLink) listResources(ctx context.Context) ([]*mcp.Resource, error) {
	if l.told.capabilities.Resources == nil {
		return nil, nil
	}
	return list[mcp.Resource](ctx, l, "resources/list", "resources", func(ctx context.Context, cursor string) error {
		_, err := l.inner.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		return err
	})
}

func (l *remoteLink) listResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error) {
	if l.told.capabilities.Resources == nil {
		return nil, nil
	}
	return list[mcp.ResourceTemplate](ctx, l, "resources/templates/list", "resourceTemplates", func(ctx context.Context, cursor string) error {
		_, err := l.inner.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
		return err
	})
}

func (l *remoteLink) listPrompts(ctx context.Context) ([]*mcp.Prompt, error) {
	if l.told.capabilities.Prompts == nil {
		return nil, nil
	}
	return list[mcp.Prompt](ctx, l, "prompts/list", "prompts", func(ctx context.Context, cursor string) error {
		_, err := l.inner.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
		return err
	})
}

// one makes a request that has one result and decodes it.
func one[T any](ctx context.Context, l *remoteLink, do func(ctx context.Context) error) (*T, error) {
	raw, err := l.raw(ctx, new(callScope), do)
	if err != nil {
		return nil, err
	}
	return decoded[T](raw)
}

func decoded[T any](raw json.RawMessage) (*T, error) {
	v := new(T)
	if err := unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("the result cannot be read: %w", err)
	}
	return v, nil
}

// answered makes a request until its result asks for no more input.
func answered[T any](ctx context.Context, l *remoteLink, do func(ctx context.Context, answers mcp.InputResponseMap, state string) error) (*T, error) {
	var answers mcp.InputResponseMap
	state := ""
	for range maxRounds {
		raw, err := l.raw(ctx, new(callScope), func(ctx context.Context) error { return do(ctx, answers, state) })
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
	return nil, errRounds
}

func (l *remoteLink) readResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return answered[mcp.ReadResourceResult](ctx, l, func(ctx context.Context, answers mcp.InputResponseMap, state string) error {
		_, err := l.inner.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri, InputResponses: answers, RequestState: state})
		return err
	})
}

func (l *remoteLink) getPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return answered[mcp.GetPromptResult](ctx, l, func(ctx context.Context, answers mcp.InputResponseMap, state string) error {
		_, err := l.inner.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args, InputResponses: answers, RequestState: state})
		return err
	})
}

func (l *remoteLink) complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return one[mcp.CompleteResult](ctx, l, func(ctx context.Context) error {
		_, err := l.inner.Complete(ctx, p)
		return err
	})
}

func (l *remoteLink) subscribe(ctx context.Context, uri string) error {
	return l.plain(ctx, func(ctx context.Context) error {
		return l.inner.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	})
}

func (l *remoteLink) unsubscribe(ctx context.Context, uri string) error {
	return l.plain(ctx, func(ctx context.Context) error {
		return l.inner.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
	})
}

func (l *remoteLink) setLevel(ctx context.Context, level mcp.LoggingLevel) error {
	return l.plain(ctx, func(ctx context.Context) error {
		return l.inner.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: level})
	})
}

// ping asks for a sign of life. A server that does not know ping is alive. The stateless protocol has no ping; what its
// handshake asks for may be asked again at any time.
func (l *remoteLink) ping(ctx context.Context) error {
	if l.told.version >= statelessSince {
		l.wire.mu.Lock()
		params := l.wire.probe.params
		l.wire.mu.Unlock()
		err := l.wire.ask(ctx, methodDiscover, params)
		return l.doubt(ctx, new(callScope), err)
	}
	err := l.plain(ctx, func(ctx context.Context) error { return l.inner.Ping(ctx, nil) })
	if isCode(err, jsonrpc.CodeMethodNotFound) {
		return nil
	}
	return err
}

func (l *remoteLink) plain(ctx context.Context, do func(ctx context.Context) error) error {
	_, err := l.raw(ctx, new(callScope), do)
	return err
}
