package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ErrInputRequired is what [Request.Elicit], [Request.Sample] and
// [Request.ListRoots] return where the client cannot be asked while the call runs
// (protocol 2026-07-28). The handler returns it, wrapped or not. The call then
// ends with the question as its result, the client calls again with the answer,
// and the handler runs anew from its beginning; this time the same question
// returns the answer. What a handler does before it asks is done once a round.
var ErrInputRequired = errors.New("mcpserver: the client must be asked first; the handler must return this error")

// maxRoundTrips is how many times a call may ask for input.
const maxRoundTrips = 10

// inputKeyPrefix marks the questions that a handler asked through its Request, as
// opposed to those that it put into its result.
const inputKeyPrefix = "tenon-"

// rounds is one round of a call whose client cannot be asked while it runs. The
// n-th question of one run of the handler is taken for the n-th of the next.
type roundTrip struct {
	server *Server
	owner  stateOwner
	caps   *mcp.ClientCapabilities

	mu      sync.Mutex // guards the rest
	asked   int
	known   map[string]json.RawMessage // the answers of this and earlier rounds
	next    mcp.InputRequestMap        // the questions that have no answer yet
	missing string                     // the capability that the client would need
}

// A roundTripState is what the client carries from one round to the next.
type roundTripState struct {
	Handler string                     `json:"h,omitempty"` // the handler's own state
	Known   map[string]json.RawMessage `json:"k,omitempty"`
	Asked   map[string]pendingInput    `json:"a,omitempty"` // what the client is to answer, by key
	Sealed  int64                      `json:"t"`           // when, in nanoseconds of Unix time
}

// newRoundTrip prepares a round of c, nil if the client of c can be asked while the
// call runs. It opens the sealed state, takes out the answers to what the
// handler asked through its Request, and leaves in c those to what the handler
// asked by its result. Its errors are errors of the protocol.
func (s *Server) newRoundTrip(ctx context.Context, kind Kind, c *Call) (*roundTrip, error) {
	if !c.MultiRoundTrip {
		return nil, nil
	}
	r := &roundTrip{server: s, owner: s.newStateOwner(ctx, kind, c), caps: c.ClientCapabilities, known: make(map[string]json.RawMessage)}
	var state roundTripState
	if c.RequestState != "" {
		var err error
		switch state, err = s.openState(r.owner, c.RequestState); {
		case errors.Is(err, errStateExpired):
			return nil, invalidParams(err.Error())
		case err != nil:
			return nil, invalidParams("requestState is not one that this server gave for this call")
		}
		maps.Copy(r.known, state.Known)
	}
	c.RequestState = state.Handler
	var err error
	if c.InputResponses, err = r.take(c.InputResponses, state.Asked); err != nil {
		return nil, invalidParams("inputResponses: " + err.Error())
	}
	if len(r.known) > maxRoundTrips {
		return nil, invalidParams(fmt.Sprintf("more than %d answers", maxRoundTrips))
	}
	return r, nil
}

// take takes out of responses those to what the handler asked through its Request
// and returns those to what it asked by its result. Answers to what nobody asked
// never reach a handler: those that claim to be of the first kind are an error,
// others are passed over, as the protocol wants it.
func (r *roundTrip) take(responses mcp.InputResponseMap, asked map[string]pendingInput) (own mcp.InputResponseMap, err error) {
	for key, response := range responses {
		question, was := asked[key]
		_, known := r.known[key]
		switch {
		case was:
		case known || !strings.HasPrefix(key, inputKeyPrefix):
			continue
		default:
			return nil, fmt.Errorf("%q answers nothing that was asked", key)
		}
		if err := question.check(response); err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
		if !strings.HasPrefix(key, inputKeyPrefix) {
			if own == nil {
				own = make(mcp.InputResponseMap)
			}
			own[key] = response
			continue
		}
		if r.known[key], err = json.Marshal(response); err != nil {
			return nil, err
		}
	}
	return own, nil
}

func invalidParams(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params: " + what}
}

// ask returns the answer to the handler's next question, or notes the question.
func (r *roundTrip) ask(question mcp.InputRequest) (mcp.InputResponse, error) {
	kind := questionKind(question)
	answer, supported := r.answerTo(question)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !supported {
		r.missing = kind
		return nil, fmt.Errorf("%s: %w", kind, ErrNotSupported)
	}
	r.asked++
	key := inputKeyPrefix + kind + "-" + strconv.Itoa(r.asked)
	if raw, ok := r.known[key]; ok {
		if err := json.Unmarshal(raw, answer); err != nil {
			return nil, fmt.Errorf("decoding the client's answer: %w", err)
		}
		return answer, nil
	}
	if r.next == nil {
		r.next = make(mcp.InputRequestMap)
	}
	r.next[key] = question
	return nil, ErrInputRequired
}

// questionKind names a question after the capability that it needs.
func questionKind(question mcp.InputRequest) string {
	switch question.(type) {
	case *mcp.ElicitParams:
		return "elicitation"
	case *mcp.ListRootsParams:
		return "roots"
	}
	return "sampling"
}

// answerTo says what the answer to a question looks like, and whether the client
// declared the capability that it needs.
func (r *roundTrip) answerTo(question mcp.InputRequest) (answer mcp.InputResponse, supported bool) {
	caps := r.caps
	if caps == nil {
		caps = &mcp.ClientCapabilities{}
	}
	switch question.(type) {
	case *mcp.ElicitParams:
		return new(mcp.ElicitResult), caps.Elicitation != nil
	case *mcp.ListRootsParams:
		return new(mcp.ListRootsResult), caps.RootsV2 != nil
	}
	return new(mcp.CreateMessageWithToolsResult), caps.Sampling != nil
}

// end says what a run of the handler has come to: nothing beside its own
// result, an error of the protocol, or questions and the state that belongs to
// them. If the handler did not fail, its questions do not count: it can do without.
func (r *roundTrip) end(failed bool) (mcp.InputRequestMap, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !failed:
		return nil, "", nil
	case r.missing != "":
		return nil, "", missingCapability(r.missing)
	case r.next == nil:
		return nil, "", nil
	}
	asked := make(map[string]pendingInput, len(r.next))
	for key, question := range r.next { // checked when they are asked again
		asked[key] = pendingInput{Kind: questionKind(question)}
	}
	state, err := r.server.sealState(r.owner, roundTripState{Known: r.known, Asked: asked})
	return r.next, state, err
}

func missingCapability(name string) error {
	data, err := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{name: struct{}{}}})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "the client does not declare the capability " + name + ", which this request needs",
		Data:    data,
	}
}

// seal is the state of a result that asks for input by itself.
func (r *roundTrip) seal(state string, requests mcp.InputRequestMap) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := make(map[string]pendingInput, len(requests))
	for key, question := range requests {
		var err error
		if asked[key], err = newPendingInput(question); err != nil {
			return "", fmt.Errorf("input %q: %w", key, err)
		}
	}
	return r.server.sealState(r.owner, roundTripState{Handler: state, Known: r.known, Asked: asked})
}

// tool is what the result of a tool comes to in this round. A nil r changes nothing.
func (r *roundTrip) tool(result *Result) (*Result, error) {
	if r == nil {
		return result, nil
	}
	if result.InputRequests != nil {
		out := *result
		var err error
		out.RequestState, err = r.seal(result.RequestState, result.InputRequests)
		return &out, err
	}
	requests, state, err := r.end(result.IsError)
	if err != nil {
		return nil, err
	}
	if requests == nil {
		return result, nil
	}
	return &Result{InputRequests: requests, RequestState: state}, nil
}

// read is what a reader or a prompt handler comes to in this round: what it asks
// for, if anything, and its failure. A nil r changes nothing.
func (r *roundTrip) read(requests mcp.InputRequestMap, state string, failure error) (mcp.InputRequestMap, string, error) {
	if r == nil {
		return requests, state, failure
	}
	if failure == nil && requests != nil {
		state, err := r.seal(state, requests)
		return requests, state, err
	}
	requests, state, err := r.end(failure != nil)
	if err != nil {
		return nil, "", err
	}
	if requests == nil {
		return nil, "", failure
	}
	return requests, state, nil
}

// fulfil asks the client of a session, which can be asked, for what a result wants.
func (ss *Session) fulfil(ctx context.Context, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	if len(requests) == 0 {
		return nil, errors.New("the server is busy, try again later") // what an empty map says
	}
	answers := make(mcp.InputResponseMap, len(requests))
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		answer, err := ss.answer(ctx, requests[key])
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", key, err)
		}
		answers[key] = answer
	}
	return answers, nil
}

func (ss *Session) answer(ctx context.Context, request mcp.InputRequest) (mcp.InputResponse, error) {
	switch p := request.(type) {
	case *mcp.ElicitParams:
		return ss.askUser(ctx, p)
	case *mcp.CreateMessageParams:
		result, err := ss.askModel(ctx, p)
		if err != nil {
			return nil, err
		}
		// What a client of 2026-07-28 sends is decoded to this type as well.
		return &mcp.CreateMessageWithToolsResult{
			Meta: result.Meta, Content: []mcp.Content{result.Content}, Model: result.Model,
			Role: result.Role, StopReason: result.StopReason,
		}, nil
	case *mcp.ListRootsParams:
		roots, err := ss.askRoots(ctx)
		if err != nil {
			return nil, err
		}
		return &mcp.ListRootsResult{Roots: roots}, nil
	}
	return nil, ErrNotSupported
}

// An pendingInput is what the sealed state of a call keeps of a question, so that only
// an answer to it counts in the next round.
type pendingInput struct {
	Kind   string          `json:"k"` // as questionKind has it
	Schema json.RawMessage `json:"s,omitempty"`
}

func newPendingInput(question mcp.InputRequest) (pendingInput, error) {
	a := pendingInput{Kind: questionKind(question)}
	p, ok := question.(*mcp.ElicitParams)
	if !ok {
		return a, nil
	}
	if _, err := newElicitCheck(p); err != nil || p.RequestedSchema == nil {
		return a, err
	}
	var err error
	a.Schema, err = json.Marshal(p.RequestedSchema)
	return a, err
}

// check checks the client's answer to the question.
func (a pendingInput) check(response mcp.InputResponse) error {
	kind := ""
	switch r := response.(type) {
	case *mcp.ElicitResult:
		kind = "elicitation"
		if a.Kind != kind {
			break
		}
		check, err := elicitCheckOf(a.Schema)
		if err != nil {
			return err
		}
		_, err = check.take(r)
		return err
	case *mcp.ListRootsResult:
		kind = "roots"
		if a.Kind == kind {
			return checkRoots(r.Roots)
		}
	case *mcp.CreateMessageResult, *mcp.CreateMessageWithToolsResult:
		kind = "sampling"
	}
	if a.Kind != kind {
		return fmt.Errorf("the answer is none to the %s request that was sent", a.Kind)
	}
	return nil
}
