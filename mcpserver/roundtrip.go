package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ErrInputRequired is returned by [Request.Elicit], [Request.Sample] and
// [Request.ListRoots] where the client cannot be asked while the call runs (protocol
// 2026-07-28). The handler must return it, wrapped or not. The call then ends with
// the request as its result, the client calls again with the answer, and the
// handler runs again from its beginning; this time the same request returns the
// answer. What a handler does before it asks is repeated each time.
var ErrInputRequired = errors.New("mcpserver: the client must be asked first; the handler must return this error")

const (
	// maxRoundTrips is the number of times that a call may ask for input.
	maxRoundTrips = 10
	// inputKeyPrefix marks requests that a handler made through its Request, as
	// opposed to those in its result.
	inputKeyPrefix = "tenon-"
)

// A roundTrip is one run of a call whose client cannot be asked while it runs. The
// n-th request of one run of the handler is the n-th of the next.
type roundTrip struct {
	server *Server
	owner  stateOwner
	caps   *mcp.ClientCapabilities

	mu      sync.Mutex // guards the rest
	asked   int
	answers map[string]json.RawMessage // of this and earlier runs
	pending mcp.InputRequestMap        // requests without an answer
	missing string                     // a capability that the client would need
}

// A roundTripState is kept by the client from one run to the next.
type roundTripState struct {
	Handler string                     `json:"h,omitempty"` // the handler's own state
	Answers map[string]json.RawMessage `json:"k,omitempty"`
	Pending map[string]pendingInput    `json:"a,omitempty"`
	Sealed  int64                      `json:"t"` // in nanoseconds of Unix time
}

// A pendingInput is the part of a request in the state that its answer is checked with.
type pendingInput struct {
	Capability string          `json:"k"`
	Schema     json.RawMessage `json:"s,omitempty"`
}

func newPendingInput(request mcp.InputRequest) (pendingInput, error) {
	in := pendingInput{Capability: capability(request)}
	p, ok := request.(*mcp.ElicitParams)
	if !ok {
		return in, nil
	}
	if _, err := newElicitCheck(p); err != nil || p.RequestedSchema == nil {
		return in, err
	}
	var err error
	in.Schema, err = json.Marshal(p.RequestedSchema)
	return in, err
}

// check checks the client's answer.
func (in pendingInput) check(response mcp.InputResponse) error {
	answered := "sampling"
	switch response.(type) {
	case *mcp.ElicitResult:
		answered = "elicitation"
	case *mcp.ListRootsResult:
		answered = "roots"
	}
	if in.Capability != answered {
		return fmt.Errorf("it does not answer the %s request that was sent", in.Capability)
	}
	switch r := response.(type) {
	case *mcp.ElicitResult:
		check, err := parseElicitCheck(in.Schema)
		if err == nil {
			_, err = check.take(r)
		}
		return err
	case *mcp.ListRootsResult:
		return checkRoots(r.Roots)
	}
	return nil
}

// newRoundTrip begins a run of c. It returns nil if the client of c can be asked
// while the call runs. It opens the sealed state, takes the answers to requests that
// the handler made through its Request, and leaves in c those to requests in the
// handler's result. Its errors are JSON-RPC errors.
func (s *Server) newRoundTrip(ctx context.Context, kind Kind, c *Call) (*roundTrip, error) {
	if !c.MultiRoundTrip {
		return nil, nil
	}
	r := &roundTrip{server: s, owner: s.newStateOwner(ctx, kind, c), caps: c.ClientCapabilities, answers: make(map[string]json.RawMessage)}
	if r.caps == nil {
		r.caps = &mcp.ClientCapabilities{}
	}
	var state roundTripState
	if c.RequestState != "" {
		var err error
		switch state, err = s.openState(r.owner, c.RequestState); {
		case errors.Is(err, errStateExpired):
			return nil, invalidParams(err.Error())
		case err != nil:
			return nil, invalidParams("requestState is not one that this server gave for this call")
		}
		maps.Copy(r.answers, state.Answers)
	}
	c.RequestState = state.Handler
	var err error
	if c.InputResponses, err = r.take(c.InputResponses, state.Pending); err != nil {
		return nil, invalidParams("inputResponses: " + err.Error())
	}
	if len(r.answers) > maxRoundTrips {
		return nil, invalidParams(fmt.Sprintf("more than %d answers", maxRoundTrips))
	}
	return r, nil
}

// take keeps the answers to requests that the handler made through its Request and
// returns those to requests in its result. Other answers never reach a handler:
// under a key of the first kind they are an error, under any other they are
// ignored, as the protocol asks.
func (r *roundTrip) take(responses mcp.InputResponseMap, pending map[string]pendingInput) (own mcp.InputResponseMap, err error) {
	for key, response := range responses {
		request, asked := pending[key]
		ours := strings.HasPrefix(key, inputKeyPrefix)
		if !asked {
			if _, known := r.answers[key]; known || !ours {
				continue
			}
			return nil, fmt.Errorf("%q answers nothing that was asked", key)
		}
		if err := request.check(response); err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
		if ours {
			if r.answers[key], err = json.Marshal(response); err != nil {
				return nil, err
			}
			continue
		}
		if own == nil {
			own = make(mcp.InputResponseMap)
		}
		own[key] = response
	}
	return own, nil
}

func invalidParams(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params: " + what}
}

// ask returns the answer to the handler's next request, or notes the request.
func (r *roundTrip) ask(request mcp.InputRequest) (mcp.InputResponse, error) {
	var answer mcp.InputResponse = new(mcp.CreateMessageWithToolsResult)
	supported := r.caps.Sampling != nil
	switch request.(type) {
	case *mcp.ElicitParams:
		answer, supported = new(mcp.ElicitResult), r.caps.Elicitation != nil
	case *mcp.ListRootsParams:
		answer, supported = new(mcp.ListRootsResult), r.caps.RootsV2 != nil
	}
	needs := capability(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !supported {
		r.missing = needs
		return nil, fmt.Errorf("%s: %w", needs, ErrNotSupported)
	}
	r.asked++
	key := inputKeyPrefix + needs + "-" + strconv.Itoa(r.asked)
	if raw, ok := r.answers[key]; ok {
		if err := json.Unmarshal(raw, answer); err != nil {
			return nil, fmt.Errorf("decoding the client's answer: %w", err)
		}
		return answer, nil
	}
	if r.pending == nil {
		r.pending = make(mcp.InputRequestMap)
	}
	r.pending[key] = request
	return nil, ErrInputRequired
}

// end returns the input requests of a run whose handler failed, and the state for
// its next run. It returns nothing if the handler did not fail or did not ask: then
// its own result counts. Its errors are JSON-RPC errors.
func (r *roundTrip) end(failed bool) (mcp.InputRequestMap, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !failed:
		return nil, "", nil
	case r.missing != "":
		data, err := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{r.missing: struct{}{}}})
		if err != nil {
			return nil, "", err
		}
		return nil, "", &jsonrpc.Error{
			Code:    mcp.CodeMissingRequiredClientCapabilities,
			Message: "the client does not declare the capability " + r.missing + ", which this request needs",
			Data:    data,
		}
	case r.pending == nil:
		return nil, "", nil
	}
	pending := make(map[string]pendingInput, len(r.pending))
	for key, request := range r.pending { // their answers are checked when the handler asks again
		pending[key] = pendingInput{Capability: capability(request)}
	}
	state, err := r.server.sealState(r.owner, roundTripState{Answers: r.answers, Pending: pending})
	return r.pending, state, err
}

// seal returns the state for the next run after a result with input requests.
func (r *roundTrip) seal(state string, requests mcp.InputRequestMap) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pending := make(map[string]pendingInput, len(requests))
	for key, request := range requests {
		var err error
		if pending[key], err = newPendingInput(request); err != nil {
			return "", fmt.Errorf("input %q: %w", key, err)
		}
	}
	return r.server.sealState(r.owner, roundTripState{Handler: state, Answers: r.answers, Pending: pending})
}

// toolResult returns the result of a run of a tool. A nil r changes nothing.
func (r *roundTrip) toolResult(result *Result) (*Result, error) {
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
	if err != nil || requests == nil {
		return result, err
	}
	return &Result{InputRequests: requests, RequestState: state}, nil
}

// readResult returns the input requests, the state and the error of a run of a
// reader or prompt handler. A nil r changes nothing.
func (r *roundTrip) readResult(requests mcp.InputRequestMap, state string, failure error) (mcp.InputRequestMap, string, error) {
	if r == nil {
		return requests, state, failure
	}
	if failure == nil && requests != nil {
		state, err := r.seal(state, requests)
		return requests, state, err
	}
	requests, state, err := r.end(failure != nil)
	switch {
	case err != nil:
		return nil, "", err
	case requests == nil:
		return nil, "", failure
	}
	return requests, state, nil
}
