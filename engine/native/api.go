package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/config"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// ErrNoCredentials reports that there is nothing to sign requests with. No request was made.
var ErrNoCredentials = errors.New("native: no credentials: set ANTHROPIC_API_KEY, or native.Options.APIKey " +
	"(for a server that wants none, any value will do)")

// An api is a connection to the Messages API.
type api struct {
	client    anthropic.Client
	keySource string
	idle      time.Duration
	// plain is set once the server has refused tool references.
	plain atomic.Bool
	// countless is set once the server has turned out not to count tokens.
	countless atomic.Bool
}

// environ looks variables up in an overlay and then in the process environment.
type environ map[string]string

func (e environ) get(name string) string {
	if v, ok := e[name]; ok {
		return v
	}
	return os.Getenv(name)
}

// lookup looks a variable up, empty or not.
func (e environ) lookup(name string) (string, bool) {
	if v, ok := e[name]; ok {
		return v, true
	}
	return os.LookupEnv(name)
}

// newAPI makes the client. What the engine's options leave open comes from env, then from where
// the official client looks.
func newAPI(o *Options, env environ) (*api, error) {
	a := &api{idle: o.IdleTimeout}
	if a.idle == 0 {
		a.idle = DefaultIdleTimeout
	}
	httpClient := o.HTTPClient
	if httpClient == nil {
		// The process's pool of connections: engines are made and dropped freely, pools are not.
		httpClient = &http.Client{Transport: http.DefaultTransport}
	}
	opts := []option.RequestOption{option.WithHTTPClient(httpClient), option.WithMiddleware(bounded)}
	credential, err := a.credential(o, env)
	if err != nil {
		return nil, err
	}
	opts = append(opts, credential...)
	base, from := o.BaseURL, "Options.BaseURL"
	if base == "" {
		base, from = env.get("ANTHROPIC_BASE_URL"), "ANTHROPIC_BASE_URL"
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
func (a *api) credential(o *Options, env environ) ([]option.RequestOption, error) {
	a.keySource = "none"
	switch key, token := env.get("ANTHROPIC_API_KEY"), env.get("ANTHROPIC_AUTH_TOKEN"); {
	case o.APIKey != "" && o.AuthToken != "":
		return nil, errors.New("native: Options.APIKey and Options.AuthToken are both set: set one of them")
	case o.APIKey != "":
		a.keySource = "user"
		return []option.RequestOption{option.WithAPIKey(o.APIKey)}, nil
	case o.AuthToken != "":
		return []option.RequestOption{option.WithAuthToken(o.AuthToken)}, nil
	case len(o.ClientOptions) > 0:
		return nil, nil // one of them may be the credential; if not, the first request says so
	case key != "":
		a.keySource = "ANTHROPIC_API_KEY"
		return []option.RequestOption{option.WithAPIKey(key)}, nil
	case token != "":
		return []option.RequestOption{option.WithAuthToken(token)}, nil
	case hasProfile(env):
		return nil, nil
	case o.HTTPClient != nil: // its transport may sign
		return []option.RequestOption{option.WithoutEnvironmentDefaults()}, nil
	}
	return nil, ErrNoCredentials
}

// hasProfile reports whether the official client would find a credential by itself.
func hasProfile(env environ) bool {
	if env.get("ANTHROPIC_PROFILE") != "" || env.get("ANTHROPIC_FEDERATION_RULE_ID") != "" {
		return true
	}
	_, err := config.LoadConfig()
	return err == nil
}

// errSilent is the cause of a request that was given up because nothing came any more.
var errSilent = errors.New("the model's server has gone silent")

// send makes one request and reads its response. On an error it returns what has arrived, if anything.
func (a *api) send(ctx context.Context, body []byte, s sink) (*response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newWatchdog(a.idle, func() { cancel(fmt.Errorf("%w for %v", errSilent, a.idle)) })
	defer watch.stop()
	var raw *http.Response
	err := a.client.Post(ctx, "v1/messages", body, &raw, option.WithHeader("Accept", "text/event-stream"))
	if err == nil {
		raw.Body = &watchedBody{ReadCloser: raw.Body, watch: watch}
		defer raw.Body.Close()
		var r *response
		if r, err = readResponse(raw, s); err == nil {
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
