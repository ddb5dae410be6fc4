package mcpserver

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A stateOwner identifies the call that a state belongs to. No other call can open it.
type stateOwner []byte

// newStateOwner returns the owner of the state of a call: the server, the kind, the
// name, the arguments and the user that the call's bearer token names.
func (s *Server) newStateOwner(ctx context.Context, kind Kind, c *Call) stateOwner {
	args := c.Arguments
	if trimmed := bytes.TrimSpace(args); len(trimmed) == 0 || string(trimmed) == "null" {
		args = emptyObject
	}
	user := ""
	if token := TokenInfo(ctx); token != nil {
		user = token.UserID
	}
	return fmt.Appendf(nil, "%q %s %q %x %q", s.name, kind, c.Name, sha256.Sum256(canonicalJSON(args)), user)
}

// stateCipher returns the cipher that encrypts and authenticates states. The
// protocol requires that of servers that do not know their clients.
func stateCipher(key []byte) (cipher.AEAD, error) {
	sum := sha256.Sum256(key)
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealState seals a state for its owner. It expires after [Options.StateLifetime].
func (s *Server) sealState(owner stateOwner, state roundTripState) (string, error) {
	state.Sealed = time.Now().UnixNano()
	plain, err := json.Marshal(state)
	if err != nil {
		return "", fmt.Errorf("sealing the state of a call: %w", err)
	}
	aead, err := stateCipher(s.stateKey())
	if err != nil {
		return "", fmt.Errorf("sealing the state of a call: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain, owner)), nil
}

// errStateExpired reports that a state is older than [Options.StateLifetime].
var errStateExpired = errors.New("requestState has expired; call again without it")

func (s *Server) openState(owner stateOwner, sealed string) (roundTripState, error) {
	var state roundTripState
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return state, err
	}
	aead, err := stateCipher(s.stateKey())
	if err != nil {
		return state, err
	}
	plain, err := aead.Open(nil, nil, raw, owner)
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(plain, &state); err != nil {
		return state, err
	}
	if limit := s.opts.StateLifetime; limit > 0 && time.Since(time.Unix(0, state.Sealed)) > limit {
		return state, errStateExpired
	}
	return state, nil
}

// canonicalJSON returns a text that two JSON values share only if every reader takes
// them for the same. Spaces, escapes and the order of members do not matter; the
// digits of numbers do. A text that is not JSON in UTF-8 is returned unchanged.
func canonicalJSON(raw json.RawMessage) []byte {
	text := jsontext.Value(bytes.Clone(raw))
	err := text.Canonicalize(jsontext.AllowDuplicateNames(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return raw
	}
	return text
}
