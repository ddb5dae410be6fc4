// Package messages makes requests to the Messages API: it encodes them, reads streamed responses,
// classifies failures, and knows models and their prices.
package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	sdkconfig "github.com/anthropics/anthropic-sdk-go/v2/config"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// ErrNoCredentials reports that no credential is configured. No request was made.
var ErrNoCredentials = errors.New("native: no credentials: set ANTHROPIC_API_KEY, or native.Options.APIKey " +
	"(for a server that wants none, any value will do)")

// A Client is a connection to the Messages API.
type Client struct {
	client    anthropic.Client
	KeySource string
	idle      time.Duration
	// Plain is set once the server has refused tool references.
	Plain atomic.Bool
	// Countless is set once the server has failed to count tokens.
	Countless atomic.Bool
}

// countTimeout bounds a request that counts tokens.
const countTimeout = 5 * time.Second

// A Config configures a client. Its fields are those of the engine's options. Idle is not zero.
type Config struct {
	APIKey, AuthToken, BaseURL string
	HTTPClient                 *http.Client
	ClientOptions              []option.RequestOption
	Idle                       time.Duration
}

// NewClient returns a client. Variables of the environment, and then the defaults of the official client,
// complete the configuration.
func NewClient(o *Config, getenv func(string) string) (*Client, error) {
	a := &Client{idle: o.Idle}
	httpClient := o.HTTPClient
	if httpClient == nil { // share the process's connection pool: programs may make many engines
		httpClient = &http.Client{Transport: http.DefaultTransport}
	}
	opts := []option.RequestOption{option.WithHTTPClient(httpClient), option.WithMiddleware(bounded)}
	credential, err := a.credential(o, getenv)
	if err != nil {
		return nil, err
	}
	opts = append(opts, credential...)
	base, from := o.BaseURL, "Options.BaseURL"
	if base == "" {
		base, from = getenv("ANTHROPIC_BASE_URL"), "ANTHROPIC_BASE_URL"
	}
	if base != "" {
		// Requests to a faulty address would be retried like those to a server that is down.
		if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("native: %s is no address of a server: set one like https://gateway.example.com", from) // its text may hold a password
		}
		opts = append(opts, option.WithBaseURL(base))
	}
	opts = append(opts, o.ClientOptions...)
	// The engine retries itself: it reports retries as messages, and an interrupt ends them.
	a.client = anthropic.NewClient(append(opts, option.WithMaxRetries(0))...)
	return a, nil
}

// credential chooses the credential and records its source for the init message.
func (a *Client) credential(o *Config, getenv func(string) string) ([]option.RequestOption, error) {
	a.KeySource = "none"
	switch key, token := getenv("ANTHROPIC_API_KEY"), getenv("ANTHROPIC_AUTH_TOKEN"); {
	case o.APIKey != "" && o.AuthToken != "":
		return nil, errors.New("native: Options.APIKey and Options.AuthToken are both set: set one of them")
	case o.APIKey != "":
		a.KeySource = "user"
		return []option.RequestOption{option.WithAPIKey(o.APIKey)}, nil
	case o.AuthToken != "":
		return []option.RequestOption{option.WithAuthToken(o.AuthToken)}, nil
	case len(o.ClientOptions) > 0:
		return nil, nil // one of them may be the credential; if not, the first request says so
	case key != "":
		a.KeySource = "ANTHROPIC_API_KEY"
		return []option.RequestOption{option.WithAPIKey(key)}, nil
	case token != "":
		return []option.RequestOption{option.WithAuthToken(token)}, nil
	case hasProfile(getenv):
		return nil, nil
	case o.HTTPClient != nil: // its transport may sign
		return []option.RequestOption{option.WithoutEnvironmentDefaults()}, nil
	}
	return nil, ErrNoCredentials
}

// hasProfile reports whether the official client finds a credential by itself.
func hasProfile(getenv func(string) string) bool {
	if getenv("ANTHROPIC_PROFILE") != "" || getenv("ANTHROPIC_FEDERATION_RULE_ID") != "" {
		return true
	}
	_, err := sdkconfig.LoadConfig()
	return err == nil
}

// errSilent is the error of a response that stopped arriving.
var errSilent = errors.New("the model's server has gone silent")

// Send makes one request and reads its response. On an error it returns what has arrived, if anything.
func (a *Client) Send(ctx context.Context, body []byte, s Sink) (*Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(a.idle, func() { cancel(fmt.Errorf("%w for %v", errSilent, a.idle)) })
	defer silent.Stop()
	var raw *http.Response
	var r *Response
	err := a.client.Post(ctx, "v1/messages", body, &raw, option.WithHeader("Accept", "text/event-stream"))
	if err == nil {
		raw.Body = &watchedBody{raw.Body, silent, a.idle}
		defer raw.Body.Close()
		r, err = ReadResponse(raw, s)
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSilent) {
		err = cause
	}
	return r, err
}

// A watchedBody restarts a timer with every byte, pings included.
type watchedBody struct {
	io.ReadCloser
	silent *time.Timer
	idle   time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.silent.Reset(b.idle)
	}
	return n, err
}

// CountTokens returns the number of tokens of a text. A server that cannot count is not asked again.
func (a *Client) CountTokens(ctx context.Context, model, text string) (int, error) {
	if a.Countless.Load() {
		return 0, errCountless
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	body := transcript.Encode(map[string]any{"model": model, "messages": []any{map[string]string{"role": transcript.RoleUser, "content": text}}})
	var res struct {
		InputTokens *int `json:"input_tokens"`
	}
	err := a.client.Post(ctx, "v1/messages/count_tokens", []byte(body), &res)
	var refused *anthropic.Error
	switch {
	case errors.As(err, &refused) && refused.StatusCode != http.StatusTooManyRequests && refused.StatusCode < 500:
		a.Countless.Store(true)
	case err == nil && res.InputTokens == nil:
		a.Countless.Store(true)
		err = errCountless
	case err == nil:
		return *res.InputTokens, nil
	}
	return 0, err
}

var errCountless = errors.New("native: the model's server does not count tokens")

// A Request is a request without the conversation.
type Request struct {
	Model       string
	MaxTokens   int
	System      json.RawMessage // an array of text blocks; nil for none
	Tools       json.RawMessage // an array; nil for none
	Thinking    json.RawMessage // nil leaves it to the model
	Output      json.RawMessage // output_config; nil for none
	Thoughts    transcript.ThoughtPolicy
	Breakpoints transcript.Breakpoints
	Plain       bool // no tool references
}

// Body encodes the request. Equal input gives equal bytes, and a longer conversation gives a body that
// differs only in its last messages and their breakpoints.
func (r *Request) Body(h *transcript.History) []byte {
	return transcript.Encode(struct {
		Model     string               `json:"model"`
		MaxTokens int                  `json:"max_tokens"`
		Stream    bool                 `json:"stream"`
		Thinking  json.RawMessage      `json:"thinking,omitempty"`
		Output    json.RawMessage      `json:"output_config,omitempty"`
		Tools     json.RawMessage      `json:"tools,omitempty"`
		System    json.RawMessage      `json:"system,omitempty"`
		Messages  []transcript.Message `json:"messages"`
	}{
		r.Model, r.MaxTokens, true, r.Thinking, r.Output, r.Tools, r.System,
		h.Messages(r.Model, r.Thoughts, r.Plain, r.Breakpoints.Parts),
	})
}

// SystemBlocks encodes the texts of a system prompt that are not blank.
func SystemBlocks(texts ...string) []json.RawMessage {
	var blocks []json.RawMessage
	for _, t := range texts {
		if !transcript.IsBlank(t) {
			blocks = append(blocks, transcript.TextPart(t).Raw)
		}
	}
	return blocks
}

// EncodeBlocks encodes blocks as an array, with a cache breakpoint at its end if mark is set. It returns nil
// for no blocks.
func EncodeBlocks(blocks []json.RawMessage, mark bool) json.RawMessage {
	n := len(blocks)
	if n == 0 {
		return nil
	}
	if mark {
		blocks = append(blocks[:n-1:n-1], transcript.WithBreakpoint(blocks[n-1], transcript.Ephemeral))
	}
	return transcript.Encode(blocks)
}
