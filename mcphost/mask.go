package mcphost

import (
	"errors"
	"os"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/secret"
)

// newMasker returns a masker of the secrets of a configuration: those of its environment, including
// what the server inherits, its arguments, its headers and its URL.
func newMasker(c ServerConfig) *secret.Masker {
	switch c := c.(type) {
	case Stdio:
		s := append(secret.InNamed(c.Env), secret.InArgs(c.Args)...)
		if !c.CleanEnv {
			s = append(s, secret.InEnviron(os.Environ())...)
		}
		return secret.NewMasker(s)
	case HTTP:
		return secret.NewMasker(append(secret.InNamed(c.Headers), secret.InURL(c.URL)...))
	case SSE:
		return newMasker(HTTP(c))
	}
	return secret.NewMasker(nil)
}

// MaskSecrets hides the secrets of a configuration in a text, as statuses, errors and logs hide
// them. Values of its environment, arguments, headers and URL are secrets because of their names or
// their looks.
func MaskSecrets(c ServerConfig, text string) string { return newMasker(c).Hide(text) }

// errorDataHead is how many bytes of the data of a server's error its text shows.
const errorDataHead = 1 << 10

// maskError hides the secrets in the error of a server and adds the beginning of the error's data.
// Other errors are returned as they are: their texts are the host's own and hold no secrets, while
// a secret may be a word in them.
func maskError(m *secret.Masker, err error) error {
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || errors.As(err, new(*maskedError)) || errors.As(err, new(*dataError)) {
		return err
	}
	text := err.Error()
	safe := m.Hide(text)
	data := ""
	if len(rpc.Data) > 0 && !jsonscan.IsNull(rpc.Data) {
		data = "; data: " + m.Head([]byte(jsonscan.TextOf(rpc.Data)), errorDataHead)
	}
	switch {
	case safe != text:
		return &maskedError{text: safe + data, err: err}
	case data != "":
		return &dataError{err, data}
	}
	return err
}

// A maskedError is an error with secrets in its text. It matches what the error matches with
// errors.Is; errors.As does not reach the error.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string        { return e.text }
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }

// A dataError is the error of a server with the beginning of its data.
type dataError struct {
	error
	data string
}

func (e *dataError) Error() string { return e.error.Error() + e.data }
func (e *dataError) Unwrap() error { return e.error }
