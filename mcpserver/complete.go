package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxSuggestions is the number of values that the protocol allows in one answer.
const maxSuggestions = 100

// Complete suggests values for an argument of a prompt or resource template: those
// of [Options.Complete], or those of the enums of a typed prompt. Without a
// suggestion the result is empty.
func (s *Server) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return s.complete(ctx, nil, p)
}

func (s *Server) complete(ctx context.Context, ss *Session, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	if s.lifetime.isClosed() || ss != nil && ss.lifetime.isClosed() {
		return nil, fmt.Errorf("completing on %q: %w", s.name, ErrClosed)
	}
	if p == nil {
		p = &mcp.CompleteParams{}
	}
	if s.opts.Complete == nil {
		return s.suggest(p), nil
	}
	name := ""
	if p.Ref != nil {
		name = p.Ref.Name + p.Ref.URI // only one of them is set
	}
	var r *mcp.CompleteResult
	_, err := s.runReader(ctx, ss, KindCompletion, name, nil, func(ctx context.Context) (_ mcp.InputRequestMap, _ string, err error) {
		r, err = s.opts.Complete(ctx, p)
		return nil, "", err
	})
	if err != nil {
		return nil, err
	}
	if r == nil {
		r = s.suggest(p)
	}
	return r, nil
}

// suggest suggests values of enums.
func (s *Server) suggest(p *mcp.CompleteParams) *mcp.CompleteResult {
	r := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	if p.Ref == nil || p.Ref.Type != "ref/prompt" {
		return r
	}
	if prompt := s.registry().prompts[p.Ref.Name]; prompt != nil {
		for _, v := range prompt.enums[p.Argument.Name] {
			if strings.HasPrefix(strings.ToLower(v), strings.ToLower(p.Argument.Value)) {
				r.Completion.Values = append(r.Completion.Values, v)
			}
		}
	}
	r.Completion.Total = len(r.Completion.Values)
	if r.Completion.Total > maxSuggestions {
		r.Completion.Values, r.Completion.HasMore = r.Completion.Values[:maxSuggestions], true
	}
	return r
}

// Complete suggests values for an argument, as [Server.Complete] does.
func (ss *Session) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return ss.server.complete(ctx, ss, p)
}
