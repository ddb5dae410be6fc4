package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// receive makes the library answer as the server does, where the two differ.
func (f *face) receive(next mcp.MethodHandler) mcp.MethodHandler {
	f.handle = next
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		var slot resultSlot
		switch method {
		case "tools/call":
			ctx = context.WithValue(ctx, resultSlotKey{}, &slot)
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && f.server.registry().tool(p.Name) != nil && !f.has(p.Name) {
				f.sync() // it is new
			}
		case "resources/read":
			ctx = context.WithValue(ctx, resultSlotKey{}, &slot)
		}
		result, err := next(ctx, method, req)
		if err != nil {
			return nil, f.errorOf(method, req, err)
		}
		if slot.result != nil {
			return slot.result, nil
		}
		switch r := result.(type) {
		case *mcp.ListToolsResult:
			f.order(r)
			return &listedTools{r, r.Tools}, nil
		case *mcp.InitializeResult:
			r.Capabilities = f.capabilities(r.Capabilities)
		case *mcp.DiscoverResult:
			r.Capabilities = f.capabilities(r.Capabilities)
		}
		return result, nil
	}
}

// listedTools is the library's result with the JSON of a [ToolList].
type listedTools struct {
	*mcp.ListToolsResult
	Tools ToolList `json:"tools"`
}

// capabilities are those of the server now, with what the library has beyond.
func (f *face) capabilities(lib *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	caps := f.server.Capabilities()
	if caps.Tools == nil {
		caps.Tools = &mcp.ToolCapabilities{ListChanged: true}
	}
	if lib == nil {
		return caps
	}
	if caps.Resources == nil {
		caps.Resources = lib.Resources
	}
	if caps.Prompts == nil {
		caps.Prompts = lib.Prompts
	}
	return caps
}

// order puts the tools, which the library sorts by name, into the order of their
// registration, with the schemas that they were registered with. A list of
// several pages keeps the library's order: its cursors depend on it.
func (f *face) order(r *mcp.ListToolsResult) {
	at := make(map[string]int)
	all := f.server.ListTools()
	for i, t := range all {
		at[t.Name] = i
	}
	for i, t := range r.Tools {
		if n, ok := at[t.Name]; ok {
			r.Tools[i] = all[n]
		}
	}
	if r.NextCursor != "" || len(r.Tools) < len(all) {
		return
	}
	slices.SortStableFunc(r.Tools, func(a, b *mcp.Tool) int {
		return place(at, a, len(all)) - place(at, b, len(all))
	})
}

func place(at map[string]int, t *mcp.Tool, last int) int {
	if n, ok := at[t.Name]; ok {
		return n
	}
	return last
}

// errorOf is an error as the bridge would answer it.
func (f *face) errorOf(method string, req mcp.Request, err error) error {
	if errors.Is(err, ErrClosed) {
		return &jsonrpc.Error{Code: codeServerClosed, Message: "the server is closed"}
	}
	if errors.Is(err, ErrTooManyCalls) {
		return &jsonrpc.Error{Code: rpcmsg.CodeBusy, Message: err.Error()}
	}
	var missing *NotFoundError
	if errors.As(err, &missing) {
		return notFound(missing, modernRequest(req))
	}
	var coded *jsonrpc.Error
	hasCode := errors.As(err, &coded)
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		if hasCode && coded.Message == fmt.Sprintf("unknown tool %q", p.Name) {
			return unknownToolError(fmt.Sprintf("Tool '%s' not found", shown(p.Name)))
		}
	case *mcp.GetPromptParams:
		if hasCode && coded.Message == fmt.Sprintf("unknown prompt %q", p.Name) {
			return notFound(&NotFoundError{Kind: KindPrompt, Name: p.Name}, false)
		}
	case *mcp.ReadResourceParams:
		if hasCode && coded.Message == "Resource not found" {
			return notFound(&NotFoundError{Kind: KindResource, Name: p.URI}, modernRequest(req))
		}
	}
	if !hasCode && (method == "resources/read" || method == "prompts/get" || method == "completion/complete") {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return err
}

// An unknownToolError is the error -32601 with a text of its own. As a
// *jsonrpc.Error it would not keep it: the library recognises the code and
// writes "method not found". So it only turns into one when asked for its code.
type unknownToolError string

func (e unknownToolError) Error() string { return string(e) }

// As is for [errors.As].
func (e unknownToolError) As(target any) bool {
	t, ok := target.(**jsonrpc.Error)
	if ok {
		*t = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: string(e)}
	}
	return ok
}

// The codes that are ours to choose.
const (
	codeServerClosed     = -32000
	codeResourceNotFound = -32002 // up to 2025-11-25
)

// notFound has the code of the protocol version in force.
func notFound(err *NotFoundError, modern bool) error {
	if err.Kind != KindResource {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	code := int64(codeResourceNotFound)
	if modern {
		code = jsonrpc.CodeInvalidParams
	}
	data, _ := json.Marshal(map[string]string{"uri": err.Name}) // texts always encode
	return &jsonrpc.Error{Code: code, Message: err.Error(), Data: data}
}

func modernRequest(req mcp.Request) bool {
	r, ok := req.(interface{ ProtocolVersion() string })
	return ok && r.ProtocolVersion() >= firstModern
}

// A resultSlot takes a result that the library's types cannot hold from the
// handler to receive, past the library.
type resultSlot struct{ result mcp.Result }

type resultSlotKey struct{}

// A verbatim is a result that the face writes itself.
type verbatim struct {
	mcp.ResultBase
	modern bool
	write  func(meta mcp.Meta, modern bool) ([]byte, error)
}

func (r *verbatim) MarshalJSON() ([]byte, error) { return r.write(r.Meta, r.modern) }

// A libraryRequest is what all requests of the library's server have.
type libraryRequest interface {
	mcp.Request
	ProtocolVersion() string
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
}

// callOf is the part of a Call that all requests share.
func callOf(req libraryRequest) Call {
	c := Call{
		Client:             req.ClientInfo(),
		ClientCapabilities: req.ClientCapabilities(),
		ProtocolVersion:    req.ProtocolVersion(),
		Rounds:             req.ProtocolVersion() >= firstModern,
		Meta:               mcp.Meta(req.GetParams().GetMeta()),
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

// continues takes over the answers to what the last round of the call asked for.
// Protocols without rounds have none: there they are members like any other that
// nobody knows, and no handler may take them for answers.
func (c *Call) continues(responses mcp.InputResponseMap, state string) {
	if c.Rounds {
		c.InputResponses, c.RequestState = responses, state
	}
}

type extraKey struct{}

// extraFrom is what the transport tells of the request that ctx's call came with.
func extraFrom(ctx context.Context) *mcp.RequestExtra {
	if extra, _ := ctx.Value(extraKey{}).(*mcp.RequestExtra); extra != nil {
		return extra
	}
	return &mcp.RequestExtra{}
}

// TokenInfo is what the bearer token of the HTTP request says that ctx's call came
// with. It is nil where there was none (see [HTTPOptions.Auth]).
func TokenInfo(ctx context.Context) *auth.TokenInfo { return extraFrom(ctx).TokenInfo }

// CloseStream ends the HTTP response that the client of ctx's call waits on, so
// that a long call does not hold a connection open: the client comes back after
// the delay and finds the result. It needs [HTTPOptions.EventStore] and a client
// of a protocol version up to 2025-11-25, and reports whether it could do it.
func CloseStream(ctx context.Context, delay time.Duration) bool {
	closeStream := extraFrom(ctx).CloseSSEStream
	if closeStream == nil {
		return false
	}
	closeStream(mcp.CloseSSEStreamArgs{RetryAfter: delay})
	return true
}

// begin finds the session for a request and the context for its handler.
func (f *face) begin(ctx context.Context, ss *mcp.ServerSession, req libraryRequest) (context.Context, *Session, Call, func(), error) {
	c := callOf(req)
	session, release, err := f.session(ss, c.Rounds, userOf(req.GetExtra()))
	if err != nil {
		return nil, nil, c, nil, err
	}
	if extra := req.GetExtra(); extra != nil {
		told := *extra
		if !f.resumes || c.Rounds { // the library would close it all the same, or do nothing
			told.CloseSSEStream = nil
		}
		ctx = context.WithValue(ctx, extraKey{}, &told)
	}
	return ctx, session, c, release, nil
}

// userOf is the user that the bearer token of a request names, "" if it names none.
func userOf(extra *mcp.RequestExtra) string {
	if extra == nil || extra.TokenInfo == nil {
		return ""
	}
	return extra.TokenInfo.UserID
}

func (f *face) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, session, c, release, err := f.begin(ctx, req.Session, req)
	if err != nil {
		return nil, err
	}
	defer release()
	c.Name, c.Arguments = req.Params.Name, req.Params.Arguments
	c.continues(req.Params.InputResponses, req.Params.RequestState)
	result, err := session.CallTool(ctx, c)
	if err != nil {
		return nil, err
	}
	if result.ToolNotFound() {
		return nil, unknownToolError(result.Text())
	}
	if slot, _ := ctx.Value(resultSlotKey{}).(*resultSlot); slot != nil && !fitsLibrary(result) {
		slot.result = wholeResult(result, c.Rounds)
	}
	return result.Library(), nil
}

// fitsLibrary reports whether the library's result type keeps all of r.
func fitsLibrary(r *Result) bool {
	if len(r.Extra) > 0 {
		return false
	}
	return !slices.ContainsFunc(r.Content, func(c mcp.Content) bool {
		e, ok := c.(*mcp.EmbeddedResource)
		return ok && lacksText(e.Resource)
	})
}

// lacksText reports whether the library would leave out the text of r, and so
// write contents that are neither text nor blob.
func lacksText(r *mcp.ResourceContents) bool {
	return r != nil && r.Text == "" && r.Blob == nil
}

func wholeResult(r *Result, modern bool) *verbatim {
	return &verbatim{
		ResultBase: mcp.ResultBase{Meta: r.Meta},
		modern:     modern,
		write: func(meta mcp.Meta, modern bool) ([]byte, error) {
			out := *r
			out.Meta = meta
			if modern {
				out.Extra = make(map[string]json.RawMessage, len(r.Extra)+1)
				for key, value := range r.Extra {
					out.Extra[key] = value
				}
				out.Extra["resultType"] = json.RawMessage(`"complete"`)
			}
			return out.MarshalJSON()
		},
	}
}

func (f *face) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	ctx, session, c, release, err := f.begin(ctx, req.Session, req)
	if err != nil {
		return nil, err
	}
	defer release()
	c.continues(req.Params.InputResponses, req.Params.RequestState)
	result, err := session.ReadResource(WithCall(ctx, c), req.Params.URI)
	if err != nil || result == nil {
		return result, err
	}
	out := *result // the library fills in what is missing
	if out.Contents == nil && out.InputRequests == nil {
		out.Contents = []*mcp.ResourceContents{}
	}
	if slot, _ := ctx.Value(resultSlotKey{}).(*resultSlot); slot != nil && slices.ContainsFunc(out.Contents, lacksText) {
		slot.result = wholeContents(&out, req.Params.URI, c.Rounds)
	}
	return &out, nil
}

// wholeContents is the result of reading a resource with an empty text in it.
func wholeContents(r *mcp.ReadResourceResult, uri string, modern bool) *verbatim {
	type contents struct {
		URI      string   `json:"uri"`
		MIMEType string   `json:"mimeType,omitempty"`
		Text     *string  `json:"text,omitempty"`
		Blob     []byte   `json:"blob,omitzero"`
		Meta     mcp.Meta `json:"_meta,omitempty"`
	}
	all := make([]contents, 0, len(r.Contents))
	for _, c := range r.Contents {
		one := contents{URI: cmp.Or(c.URI, uri), MIMEType: c.MIMEType, Blob: c.Blob, Meta: c.Meta}
		if c.Blob == nil {
			one.Text = &c.Text
		}
		all = append(all, one)
	}
	return &verbatim{
		ResultBase: mcp.ResultBase{Meta: r.Meta},
		modern:     modern,
		write: func(meta mcp.Meta, modern bool) ([]byte, error) {
			out := struct {
				ResultType string     `json:"resultType,omitempty"`
				Meta       mcp.Meta   `json:"_meta,omitempty"`
				Contents   []contents `json:"contents"`
				TTL        int        `json:"ttlMs"`
				Scope      string     `json:"cacheScope"`
			}{"", meta, all, r.TTLMs, cmp.Or(r.CacheScope, "public")}
			if modern {
				out.ResultType = "complete"
			}
			return json.Marshal(&out)
		},
	}
}

func (f *face) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	ctx, session, c, release, err := f.begin(ctx, req.Session, req)
	if err != nil {
		return nil, err
	}
	defer release()
	c.continues(req.Params.InputResponses, req.Params.RequestState)
	args := req.Params.Arguments
	if args == nil {
		args = map[string]string{}
	}
	result, err := session.GetPrompt(WithCall(ctx, c), req.Params.Name, args)
	if err != nil || result == nil {
		return result, err
	}
	out := *result // the library marks it
	if out.Messages == nil && out.InputRequests == nil {
		out.Messages = []*mcp.PromptMessage{}
	}
	return &out, nil
}

func (f *face) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	if f.server.Capabilities().Completions == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server completes nothing"}
	}
	ctx, session, c, release, err := f.begin(ctx, req.Session, req)
	if err != nil {
		return nil, err
	}
	defer release()
	return session.Complete(WithCall(ctx, c), req.Params)
}

// subscribe and unsubscribe let the server know; who subscribed the library keeps
// count of. The session stays with the library's, as the subscription does.
func (f *face) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	session, _, err := f.session(req.Session, false, "")
	if err != nil {
		return err
	}
	return session.Subscribe(ctx, req.Params.URI)
}

func (f *face) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	session, _, err := f.session(req.Session, false, "")
	if err == nil {
		err = session.Unsubscribe(ctx, req.Params.URI)
	}
	if errors.Is(err, ErrClosed) {
		return nil // so that the library forgets it, too
	}
	return err
}

// checkElicitSchema refuses what the library's validator may not survive. The
// protocol allows flat objects of primitive properties only, without references.
func checkElicitSchema(schema any) error {
	if schema == nil {
		return nil
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return fmt.Errorf("elicitation schema: %w", err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return fmt.Errorf("elicitation schema: %w", err)
	}
	return checkFlat(tree, 0)
}

func checkFlat(tree any, depth int) error {
	const most = 8 // properties, the property, anyOf, its entries, and some
	if depth > most {
		return errors.New("elicitation schema: nested too deeply, want a flat object")
	}
	switch t := tree.(type) {
	case map[string]any:
		for key, value := range t {
			switch key {
			case "$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions":
				return fmt.Errorf("elicitation schema: %s is not allowed", key)
			}
			if err := checkFlat(value, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range t {
			if err := checkFlat(value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
