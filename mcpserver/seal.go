package mcpserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// A stateOwner says which call a state belongs to: it is worth nothing to another.
type stateOwner []byte

// newStateOwner is the owner of the state of a call: the kind, the name and, for
// tools, the arguments, whichever way they are spaced.
func newStateOwner(kind Kind, c *Call) stateOwner {
	arguments := sha256.Sum256(compactJSON(c.Arguments))
	return fmt.Appendf(nil, "%s %q %x", kind, c.Name, arguments)
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

// stateCipher makes the cipher that seals states. The protocol demands that
// servers which do not know their clients encrypt and sign them; here all do.
func stateCipher(key []byte) (cipher.AEAD, error) {
	sum := sha256.Sum256(key)
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s *Server) sealState(owner stateOwner, state roundState) (string, error) {
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

func (s *Server) openState(owner stateOwner, sealed string) (roundState, error) {
	var state roundState
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
	return state, json.Unmarshal(plain, &state)
}
