package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Timeout is the time limit of the session's calls in force.
func (s *librarySession) Timeout() time.Duration { return s.limit }

// CallTool calls a tool of the library server. As with a [Session], what goes
// wrong in the call is a result; the library's own errors are such results too.
func (s *librarySession) CallTool(ctx context.Context, c Call) (*Result, error) {
	limited, cancel := ctx, func() {}
	if s.limit != NoTimeout {
		limited, cancel = context.WithTimeoutCause(ctx, s.limit, errCallLimit)
	}
	defer cancel()
	params := &mcp.CallToolParams{
		Meta: metaOf(c), Name: c.Name, InputResponses: c.InputResponses, RequestState: c.RequestState,
		Arguments: json.RawMessage("{}"),
	}
	if len(c.Arguments) > 0 && string(c.Arguments) != "null" {
		params.Arguments = c.Arguments
	}
	raw, err := s.call(limited, func(ctx context.Context) error {
		_, err := s.client.CallTool(ctx, params)
		return err
	})
	var coded *jsonrpc.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctxError(ctx, "calling tool", c.Name)
	case limited.Err() != nil:
		if s.opts.OnFailure != nil {
			_ = contain(ctx, s.owner.log.Load(), "SessionOptions.OnFailure", func() error { // a panic has been logged
				s.opts.OnFailure(ctx, Failure{Kind: KindTool, Name: c.Name, Timeout: s.limit})
				return nil
			})
		}
		return Errorf("Tool '%s' timed out after %s", c.Name, showLimit(s.limit)), nil
	case errors.Is(err, ErrClosed):
		return nil, fmt.Errorf("calling tool %q: %w", c.Name, ErrClosed)
	case errors.As(err, &coded) && coded.Code == jsonrpc.CodeInvalidParams && coded.Message == fmt.Sprintf("unknown tool %q", c.Name):
		return toolNotFound(c.Name), nil
	default:
		return Errorf("%s", err.Error()), nil
	}
	result := new(Result)
	if err := json.Unmarshal(raw, result); err != nil {
		return Errorf("Tool '%s' returned a malformed result: %v", c.Name, err), nil
	}
	return result, nil
}

// metaOf is the _meta of a request with the progress token in it.
func metaOf(c Call) mcp.Meta {
	if c.ProgressToken == nil {
		return c.Meta
	}
	meta := maps.Clone(c.Meta)
	if meta == nil {
		meta = make(mcp.Meta, 1)
	}
	meta["progressToken"] = c.ProgressToken
	return meta
}

func (s *librarySession) ListResources(ctx context.Context) ([]*mcp.Resource, error) {
	if s.owner.capabilities(ctx).Resources == nil {
		return nil, nil
	}
	return pages(s, func(cursor string) ([]*mcp.Resource, string, error) {
		var page mcp.ListResourcesResult
		err := s.decode(ctx, &page, func(ctx context.Context) error {
			_, err := s.client.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			return err
		})
		return page.Resources, page.NextCursor, err
	})
}

func (s *librarySession) ListResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error) {
	if s.owner.capabilities(ctx).Resources == nil {
		return nil, nil
	}
	return pages(s, func(cursor string) ([]*mcp.ResourceTemplate, string, error) {
		var page mcp.ListResourceTemplatesResult
		err := s.decode(ctx, &page, func(ctx context.Context) error {
			_, err := s.client.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
			return err
		})
		return page.ResourceTemplates, page.NextCursor, err
	})
}

func (s *librarySession) ListPrompts(ctx context.Context) ([]*mcp.Prompt, error) {
	if s.owner.capabilities(ctx).Prompts == nil {
		return nil, nil
	}
	return pages(s, func(cursor string) ([]*mcp.Prompt, string, error) {
		var page mcp.ListPromptsResult
		err := s.decode(ctx, &page, func(ctx context.Context) error {
			_, err := s.client.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			return err
		})
		return page.Prompts, page.NextCursor, err
	})
}

// decode makes one request and decodes its result.
func (s *librarySession) decode(ctx context.Context, result any, do func(ctx context.Context) error) error {
	raw, err := s.call(ctx, do)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, result)
}

func (s *librarySession) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	c := callFrom(ctx)
	params := &mcp.ReadResourceParams{URI: uri, Meta: metaOf(c), InputResponses: c.InputResponses, RequestState: c.RequestState}
	result := new(mcp.ReadResourceResult)
	err := s.decode(ctx, result, func(ctx context.Context) error {
		_, err := s.client.ReadResource(ctx, params)
		return err
	})
	var coded *jsonrpc.Error
	if errors.As(err, &coded) && unknownResource(coded, uri) {
		return nil, &NotFoundError{Kind: KindResource, Name: uri}
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// unknownResource reports whether err is the library's for an unknown URI, whose
// code depends on its settings.
func unknownResource(err *jsonrpc.Error, uri string) bool {
	var data struct {
		URI string `json:"uri"`
	}
	return (err.Code == jsonrpc.CodeInvalidParams || err.Code == codeResourceNotFound) &&
		json.Unmarshal(err.Data, &data) == nil && data.URI == uri
}

func (s *librarySession) GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	c := callFrom(ctx)
	params := &mcp.GetPromptParams{
		Name: name, Arguments: args, Meta: metaOf(c), InputResponses: c.InputResponses, RequestState: c.RequestState,
	}
	result := new(mcp.GetPromptResult)
	err := s.decode(ctx, result, func(ctx context.Context) error {
		_, err := s.client.GetPrompt(ctx, params)
		return err
	})
	var coded *jsonrpc.Error
	if errors.As(err, &coded) && coded.Code == jsonrpc.CodeInvalidParams && coded.Message == fmt.Sprintf("unknown prompt %q", name) {
		return nil, &NotFoundError{Kind: KindPrompt, Name: name}
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

func (s *librarySession) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	result := new(mcp.CompleteResult)
	err := s.decode(ctx, result, func(ctx context.Context) error {
		_, err := s.client.Complete(ctx, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

func (s *librarySession) Subscribe(ctx context.Context, uri string) error {
	if err := s.client.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		return s.errorOf(ctx, err)
	}
	return nil
}

func (s *librarySession) Unsubscribe(ctx context.Context, uri string) error {
	if err := s.client.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}); err != nil {
		return s.errorOf(ctx, err)
	}
	return nil
}

func (s *librarySession) SetLevel(ctx context.Context, level mcp.LoggingLevel) error {
	if err := s.client.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: level}); err != nil {
		return s.errorOf(ctx, err)
	}
	return nil
}

// Close ends the connection, which cancels the calls on both its ends, and waits
// for them for two seconds at most: a handler that heeds no cancellation
// is left behind.
func (s *librarySession) Close() error {
	s.closing.Do(func() {
		_ = s.conn.Close() // never fails
		waitFor(closeGrace, func() {
			_ = s.served.Wait() // an end is an end
			if s.client != nil {
				_ = s.client.Wait()
			}
		})
	})
	return nil
}
