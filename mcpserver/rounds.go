package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRounds is how many times a call may ask for input.
const maxRounds = 10

// rounds lets a handler ask the client as if the call were one, though each
// question ends it and it comes again with the answer: the handler runs from
// its beginning each time, and its n-th question gets the n-th answer.
type rounds struct {
	mu    sync.Mutex
	asked int
	known mcp.InputResponseMap // the answers to the first questions
	next  mcp.InputRequestMap  // the questions that have no answer yet
}

var errInputNeeded = errors.New("mcpserver: the call needs input from the client; the handler must return this error")

// ask returns the answer to the handler's next question, or errInputNeeded.
func (r *rounds) ask(p mcp.InputRequest) (mcp.InputResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	key := "input-" + strconv.Itoa(r.asked)
	if answer, ok := r.known[key]; ok {
		return answer, nil
	}
	if r.next == nil {
		r.next = mcp.InputRequestMap{}
	}
	r.next[key] = p
	return nil, errInputNeeded
}

// result turns the end of a round into what the client gets, nil if nothing was asked.
func (r *rounds) result(s *Server, c Call) (*Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		return nil, nil
	}
	state, err := s.sealState(c, r.known)
	if err != nil {
		return nil, err
	}
	return &Result{InputRequests: r.next, RequestState: state}, nil
}

const statePrefix = "tenon1."

// newRounds reads the answers that a call brings.
func (s *Server) newRounds(c Call) (*rounds, error) {
	r := &rounds{known: mcp.InputResponseMap{}}
	if strings.HasPrefix(c.RequestState, statePrefix) {
		known, err := s.openState(c)
		if err != nil {
			return nil, err
		}
		r.known = known
	}
	for key, answer := range c.InputResponses {
		r.known[key] = answer
	}
	return r, nil
}

// sealState packs the answers so far for the client to keep. It cannot change
// them, nor use them for another call.
func (s *Server) sealState(c Call, known mcp.InputResponseMap) (string, error) {
	payload, err := json.Marshal(known)
	if err != nil {
		return "", fmt.Errorf("mcpserver: encoding the state of a call: %w", err)
	}
	return statePrefix + base64.RawURLEncoding.EncodeToString(append(s.stateMAC(c, payload), payload...)), nil
}

var errBadState = errors.New("the request state is not one that this server gave for this call")

func (s *Server) openState(c Call) (mcp.InputResponseMap, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(c.RequestState, statePrefix))
	if err != nil || len(sealed) < sha256.Size {
		return nil, errBadState
	}
	payload := sealed[sha256.Size:]
	if !hmac.Equal(sealed[:sha256.Size], s.stateMAC(c, payload)) {
		return nil, errBadState
	}
	var known mcp.InputResponseMap
	if err := json.Unmarshal(payload, &known); err != nil || known == nil {
		return nil, errBadState
	}
	return known, nil
}

func (s *Server) stateMAC(c Call, payload []byte) []byte {
	mac := hmac.New(sha256.New, s.stateKey())
	arguments := sha256.Sum256(compactJSON(c.Arguments))
	fmt.Fprintf(mac, "%q %x ", c.Name, arguments)
	mac.Write(payload)
	return mac.Sum(nil)
}

// compactJSON makes arguments comparable: a client may send them again with other spaces.
func compactJSON(raw json.RawMessage) []byte {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}

// fulfil asks the session's client for what a handler's result asks for.
func (ss *Session) fulfil(ctx context.Context, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	answers := make(mcp.InputResponseMap, len(requests))
	for key, request := range requests {
		answer, err := ss.answer(ctx, request)
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
		if ss.elicit != nil {
			return ss.elicit(ctx, p)
		}
	case *mcp.CreateMessageParams:
		if ss.sample != nil {
			return ss.sample(ctx, p)
		}
	case *mcp.ListRootsParams:
		if ss.listRoots != nil {
			roots, err := ss.listRoots(ctx)
			if err != nil {
				return nil, err
			}
			return &mcp.ListRootsResult{Roots: roots}, nil
		}
	}
	return nil, ErrNotSupported
}
