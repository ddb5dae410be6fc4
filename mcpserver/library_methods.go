package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// receive is a middleware of the library. It serves what the server has; the
// library serves what was added to it directly.
func (a *adapter) receive(next mcp.MethodHandler) mcp.MethodHandler {
	a.next = next
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, served, err := a.serve(ctx, req)
		var missing *NotFoundError
		var unknown unknownToolError
		if notFound := errors.As(err, &missing) || errors.As(err, &unknown); !served || notFound {
			theirs, theirErr := next(ctx, method, req)
			if theirErr == nil || !notFound {
				result, err = theirs, theirErr
			}
		}
		switch {
		case errors.As(err, &unknown):
			return nil, unknown
		case err != nil:
			version := ""
			if r, ok := req.(libraryRequest); ok {
				version = r.ProtocolVersion()
			}
			return nil, ProtocolError(err, version)
		}
		return a.extend(result), nil
	}
}

// serve serves a request for one tool, resource or prompt.
func (a *adapter) serve(ctx context.Context, req mcp.Request) (result mcp.Result, served bool, err error) {
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		result, err = a.callTool(ctx, r)
	case *mcp.ReadResourceRequest:
		result, err = a.readResource(ctx, r)
	case *mcp.GetPromptRequest:
		result, err = a.getPrompt(ctx, r)
	default:
		return nil, false, nil
	}
	return result, true, err
}

// extend adds to a result of the library what the server has. A list is extended
// on its last page, which is the first unless much was added directly.
func (a *adapter) extend(result mcp.Result) mcp.Result {
	switch r := result.(type) {
	case *mcp.InitializeResult:
		r.Capabilities = a.capabilities(r.Capabilities)
	case *mcp.DiscoverResult:
		r.Capabilities = a.capabilities(r.Capabilities)
	case *mcp.ListToolsResult:
		r.Tools = extended(a.server.ListTools(), r.Tools, a.isRegistered, r.NextCursor)
		return &listToolsResult{r, r.Tools}
	case *mcp.ListResourcesResult:
		isPlaceholder := func(x *mcp.Resource) bool { return x.URI == placeholderURI }
		r.Resources = extended(a.server.ListResources(), r.Resources, isPlaceholder, r.NextCursor)
	case *mcp.ListResourceTemplatesResult:
		r.ResourceTemplates = extended(a.server.ListResourceTemplates(), r.ResourceTemplates, nil, r.NextCursor)
	case *mcp.ListPromptsResult:
		isPlaceholder := func(x *mcp.Prompt) bool { return x.Name == placeholder }
		r.Prompts = extended(a.server.ListPrompts(), r.Prompts, isPlaceholder, r.NextCursor)
	}
	return result
}

// extended returns one page of the library's list, extended by own on the last page.
func extended[T any](own, page []T, hidden func(T) bool, next string) []T {
	if hidden != nil {
		page = slices.DeleteFunc(page, hidden)
	}
	if next == "" {
		return append(own, page...)
	}
	return page
}

// listToolsResult is the library's result with the JSON of a [ToolList].
type listToolsResult struct {
	*mcp.ListToolsResult
	Tools ToolList `json:"tools"`
}

// capabilities returns those of the server now, with what the library has beyond.
func (a *adapter) capabilities(lib *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	caps := a.server.Capabilities()
	if caps.Resources == nil {
		caps.Resources = lib.Resources
	}
	if caps.Prompts == nil {
		caps.Prompts = lib.Prompts
	}
	return caps
}

// A rawResult is a result that the adapter encodes, because the library's type
// loses part of it.
type rawResult struct {
	mcp.ResultBase
	encode func(meta mcp.Meta) ([]byte, error)
}

// MarshalJSON is for [json.Marshal].
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.encode(r.Meta) }

// resultHead holds the members that all results have.
type resultHead struct {
	ResultType string   `json:"resultType,omitempty"`
	Meta       mcp.Meta `json:"_meta,omitempty"`
}

// inputRequired returns a result that asks the client for input.
func inputRequired(meta mcp.Meta, requests mcp.InputRequestMap, state string) mcp.Result {
	return &rawResult{mcp.ResultBase{Meta: meta}, func(meta mcp.Meta) ([]byte, error) {
		return json.Marshal(&struct {
			resultHead
			InputRequests mcp.InputRequestMap `json:"inputRequests"`
			RequestState  string              `json:"requestState,omitempty"`
		}{resultHead{"input_required", meta}, requests, state})
	}}
}

// resultType returns the resultType of the result of a call that needs no input.
func (c Call) resultType() string {
	if c.MultiRoundTrip {
		return "complete"
	}
	return "" // unknown up to 2025-11-25
}

// A libraryRequest has the methods that all requests of the library's server have.
type libraryRequest interface {
	mcp.Request
	ProtocolVersion() string
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
}

// newCall returns the members of a Call that all requests have. Before 2026-07-28
// responses and state mean nothing, and must not reach a handler as answers.
func newCall(req libraryRequest, responses mcp.InputResponseMap, state string) Call {
	c := Call{
		Client:             req.ClientInfo(),
		ClientCapabilities: req.ClientCapabilities(),
		ProtocolVersion:    req.ProtocolVersion(),
		MultiRoundTrip:     req.ProtocolVersion() >= v20260728,
		Meta:               mcp.Meta(req.GetParams().GetMeta()),
	}
	if c.MultiRoundTrip {
		c.InputResponses, c.RequestState = responses, state
	}
	c.ProgressToken = c.Meta["progressToken"]
	if text, ok := c.ProgressToken.(string); ok && len(text) > rpcmsg.MaxID {
		c.ProgressToken = nil // each notification would repeat it
	}
	if extra := req.GetExtra(); extra != nil {
		c.RequestID = extra.Header.Get(requestIDHeader)
	}
	return c
}

// begin returns the session for a request and the context for its handler.
func (a *adapter) begin(ctx context.Context, ss *mcp.ServerSession, req libraryRequest) (context.Context, *Session, func(), error) {
	user, extra := "", req.GetExtra()
	if extra != nil {
		known := *extra
		if !a.resumes || req.ProtocolVersion() >= v20260728 { // nobody could come back to the stream
			known.CloseSSEStream = nil
		}
		ctx = context.WithValue(ctx, extraKey{}, &known)
		if extra.TokenInfo != nil {
			user = extra.TokenInfo.UserID
		}
	}
	session, release, err := a.session(ss, req.ProtocolVersion(), user)
	return ctx, session, release, err
}

func (a *adapter) callTool(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	if a.server.registry().tool(req.Params.Name) == nil {
		return nil, unknownToolError(toolNotFound(req.Params.Name).Text())
	}
	ctx, session, release, err := a.begin(ctx, req.Session, req)
	if err != nil {
		return nil, err
	}
	defer release()
	c := newCall(req, req.Params.InputResponses, req.Params.RequestState)
	c.Name, c.Arguments = req.Params.Name, req.Params.Arguments
	result, err := session.CallTool(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case result.ToolNotFound():
		return nil, unknownToolError(result.Text())
	case result.InputRequests != nil:
		return inputRequired(result.Meta, result.InputRequests, result.RequestState), nil
	}
	return &rawResult{mcp.ResultBase{Meta: result.Meta}, func(meta mcp.Meta) ([]byte, error) {
		out := *result
		out.Meta = meta
		if kind := c.resultType(); kind != "" {
			out.Extra = maps.Clone(result.Extra)
			if out.Extra == nil {
				out.Extra = make(map[string]json.RawMessage, 1)
			}
			out.Extra["resultType"] = json.RawMessage(`"` + kind + `"`)
		}
		return out.MarshalJSON()
	}}, nil
}

func (a *adapter) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	ctx, session, release, err := a.begin(ctx, req.Session, req)
	if err != nil {
		return nil, err
	}
	defer release()
	c := newCall(req, req.Params.InputResponses, req.Params.RequestState)
	result, err := session.ReadResource(WithCall(ctx, c), req.Params.URI)
	if err != nil {
		return nil, err
	}
	if result.InputRequests != nil {
		return inputRequired(result.Meta, result.InputRequests, result.RequestState), nil
	}
	return &rawResult{mcp.ResultBase{Meta: result.Meta}, func(meta mcp.Meta) ([]byte, error) {
		contents, err := ContentsJSON(result, req.Params.URI)
		if err != nil {
			return nil, err
		}
		return json.Marshal(&struct {
			resultHead
			Contents json.RawMessage `json:"contents"`
			TTL      int             `json:"ttlMs"`
			Scope    string          `json:"cacheScope"`
		}{resultHead{c.resultType(), meta}, contents, result.TTLMs, cmp.Or(result.CacheScope, "public")})
	}}, nil
}

func (a *adapter) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (mcp.Result, error) {
	ctx, session, release, err := a.begin(ctx, req.Session, req)
	if err != nil {
		return nil, err
	}
	defer release()
	c := newCall(req, req.Params.InputResponses, req.Params.RequestState)
	result, err := session.GetPrompt(WithCall(ctx, c), req.Params.Name, req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	if result.InputRequests != nil {
		return inputRequired(result.Meta, result.InputRequests, result.RequestState), nil
	}
	return &rawResult{mcp.ResultBase{Meta: result.Meta}, func(meta mcp.Meta) ([]byte, error) {
		return json.Marshal(&struct {
			resultHead
			Description string               `json:"description,omitempty"`
			Messages    []*mcp.PromptMessage `json:"messages"`
		}{resultHead{c.resultType(), meta}, result.Description, append([]*mcp.PromptMessage{}, result.Messages...)})
	}}, nil
}

func (a *adapter) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	if a.server.Capabilities().Completions == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server completes nothing"}
	}
	ctx, session, release, err := a.begin(ctx, req.Session, req)
	if err != nil {
		return nil, err
	}
	defer release()
	return session.Complete(WithCall(ctx, newCall(req, nil, "")), req.Params)
}

// subscribe and unsubscribe inform the server; the library keeps track of who
// subscribed. The session lives as long as the library's, like the subscription.
func (a *adapter) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	session, _, err := a.session(req.Session, "", "")
	if err != nil {
		return err
	}
	return session.Subscribe(ctx, req.Params.URI)
}

func (a *adapter) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	session, _, err := a.session(req.Session, "", "")
	if err == nil {
		err = session.Unsubscribe(ctx, req.Params.URI)
	}
	if errors.Is(err, ErrClosed) {
		return nil // so that the library forgets it, too
	}
	return err
}
