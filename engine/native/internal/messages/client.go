// Package messages makes requests to the Messages API: it encodes them, reads streamed responses,
// classifies failures, and knows models and their prices.
package messages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	sdkconfig "github.com/anthropics/anthropic-sdk-go/v2/config"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// ErrNoCredentials reports that there is nothing to sign requests with. No request was made.
var ErrNoCredentials = errors.New("native: no credentials: set ANTHROPIC_API_KEY, or native.Options.APIKey " +
	"(for a server that wants none, any value will do)")

// An Client is a connection to the Messages API.
type Client struct {
	client    anthropic.Client
	KeySource string
	idle      time.Duration
	// Plain is set once the server has refused tool references.
	Plain atomic.Bool
	// Countless is set once the server has turned out not to count tokens.
	Countless atomic.Bool
}

// countTimeout bounds a request that counts tokens.
const countTimeout = 5 * time.Second

// A Config configures the connection. Its fields are those of the engine's options; idle is not zero.
type Config struct {
	APIKey, AuthToken, BaseURL string
	HTTPClient                 *http.Client
	ClientOptions              []option.RequestOption
	Idle                       time.Duration
}

// NewClient makes the client. What the configuration leaves open comes from environment variables, then
// from where the official client looks.
func NewClient(o *Config, getenv func(string) string) (*Client, error) {
	a := &Client{idle: o.Idle}
	httpClient := o.HTTPClient
	if httpClient == nil {
		// The process's pool of connections: engines are made and dropped freely, pools are not.
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
		// Tried and tried again it would only look like a server that is down; and no other address is meant.
		if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("native: %s is no address of a server: set one like https://gateway.example.com", from) // its text may hold a password
		}
		opts = append(opts, option.WithBaseURL(base))
	}
	opts = append(opts, o.ClientOptions...)
	// Retries are ours: they are messages of the run, and an interrupt ends them.
	opts = append(opts, option.WithMaxRetries(0))
	a.client = anthropic.NewClient(opts...)
	return a, nil
}

// credential chooses the credential and notes its source, in the words of the init message.
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

// hasProfile reports whether the official client would find a credential by itself.
func hasProfile(getenv func(string) string) bool {
	if getenv("ANTHROPIC_PROFILE") != "" || getenv("ANTHROPIC_FEDERATION_RULE_ID") != "" {
		return true
	}
	_, err := sdkconfig.LoadConfig()
	return err == nil
}

// errSilent is the cause of a request that was given up because nothing came any more.
var errSilent = errors.New("the model's server has gone silent")

// Send makes one request and reads its response. On an error it returns what has arrived, if anything.
func (a *Client) Send(ctx context.Context, body []byte, s Sink) (*Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newWatchdog(a.idle, func() { cancel(fmt.Errorf("%w for %v", errSilent, a.idle)) })
	defer watch.stop()
	var raw *http.Response
	err := a.client.Post(ctx, "v1/messages", body, &raw, option.WithHeader("Accept", "text/event-stream"))
	if err == nil {
		raw.Body = &watchedBody{ReadCloser: raw.Body, watch: watch}
		defer raw.Body.Close()
		var r *Response
		if r, err = ReadResponse(raw, s); err == nil {
			return r, nil
		}
		return r, because(ctx, err)
	}
	return nil, because(ctx, err)
}

// because replaces the error of a request that was cut off by the reason for that.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		return cause
	}
	return err
}

// A watchdog calls a function when nobody has touched it for a while.
type watchdog struct {
	timer *time.Timer
	d     time.Duration
	over  atomic.Bool
}

func newWatchdog(d time.Duration, bark func()) *watchdog {
	return &watchdog{d: d, timer: time.AfterFunc(d, bark)}
}

func (w *watchdog) touch() {
	if !w.over.Load() {
		w.timer.Reset(w.d)
	}
}

func (w *watchdog) stop() {
	w.over.Store(true)
	w.timer.Stop()
}

// A watchedBody tells a watchdog of every byte, pings included.
type watchedBody struct {
	io.ReadCloser
	watch *watchdog
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.touch()
	}
	return n, err
}

// CountTokens asks the API what a text weighs. A server that cannot count is not asked again.
func (a *Client) CountTokens(ctx context.Context, model, text string) (int, error) {
	if a.Countless.Load() {
		return 0, errCountless
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	body := transcript.Encode(struct {
		Model    string     `json:"model"`
		Messages []textTurn `json:"messages"`
	}{model, []textTurn{{transcript.RoleUser, strings.ToValidUTF8(text, "\uFFFD")}}})
	var res struct {
		InputTokens *int `json:"input_tokens"`
	}
	err := a.client.Post(ctx, "v1/messages/count_tokens", []byte(body), &res)
	var refused *anthropic.Error
	switch {
	case errors.As(err, &refused) && refused.StatusCode != http.StatusTooManyRequests && refused.StatusCode < 500:
		a.Countless.Store(true)
		return 0, err
	case err != nil:
		return 0, err
	case res.InputTokens == nil:
		a.Countless.Store(true)
		return 0, errCountless
	}
	return *res.InputTokens, nil
}

var errCountless = errors.New("native: the model's server does not count tokens")

type textTurn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}
