// Package native runs agents in this process, by a tool loop on the Messages API and an MCP host.
//
//	for msg, err := range agent.Query(ctx, native.New(nil), "How many of AB-00017 are left?", opts) {
//
// It works with every server of the Messages API. With nil options the credential and the address come from
// the environment: ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL.
package native

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
)

// Options configures an engine. The zero value, like a nil pointer, means the defaults.
type Options struct {
	// APIKey and AuthToken are the credential; at most one of them. Empty means the environment's.
	APIKey, AuthToken string
	// BaseURL is the address of the API. Empty means ANTHROPIC_BASE_URL, else the Anthropic API's own.
	BaseURL string
	// HTTPClient makes the requests. Nil means one with the process's connection pool.
	HTTPClient *http.Client
	// ClientOptions are passed to the official client after all others: Bedrock, Vertex, headers, middleware.
	ClientOptions []option.RequestOption
	// MaxRetries limits the retries of a request that failed for a passing reason. Zero means
	// [DefaultMaxRetries], [NoRetries] means none. If no connection can be made, because the address refuses
	// it or the host does not exist, there are at most four retries, within 8 seconds.
	MaxRetries int
	// IdleTimeout limits the time without data in a response. Zero means [DefaultIdleTimeout].
	IdleTimeout time.Duration
	// DefaultModel is the model of runs that name none. Empty means [DefaultModel].
	DefaultModel string
	// Prices replace or add to the built-in prices, by model ID.
	Prices map[string]Price
	// DisablePromptCaching sends requests without cache breakpoints, for gateways that refuse them.
	DisablePromptCaching bool
	// ResultsDir is the folder for results that are too large for the model and content that it cannot
	// read: files of mode 0600, at most 1 GiB a session, which are not removed. Empty means a temporary
	// folder of each session, which is removed when the session closes.
	ResultsDir string
	// DisableToolReferences describes the results of tool searches in words and sends found tools like all
	// others, for gateways without tool references and defer_loading. After a refusal by such a gateway,
	// the engine does so by itself.
	DisableToolReferences bool
}

// An Engine runs agents in this process. It is safe for concurrent use, holds no conversation, and
// needs no closing. Its sessions share one client.
type Engine struct {
	opts    Options
	indexes toolset.Indexes

	mu     sync.Mutex       // guards the rest
	shared *messages.Client // for sessions without variables for the client; nil before the first
}

var _ agent.Engine = (*Engine)(nil)

// A Price is what a model costs, in US dollars for a million tokens.
type Price = messages.Price

// PriceSource is the source of the built-in prices and their date. The prices are an estimate: batch,
// regional and agreed prices differ, and tools that the API runs cost extra.
const PriceSource = messages.PriceSource

// ErrNoCredentials is the error of Open if there is no credential. No request was made.
var ErrNoCredentials = messages.ErrNoCredentials

// New returns an engine. It does no I/O. Open reports invalid options.
func New(o *Options) *Engine {
	e := &Engine{}
	if o != nil {
		e.opts = *o
		e.opts.Prices = maps.Clone(o.Prices)
		e.opts.ClientOptions = slices.Clone(o.ClientOptions)
	}
	return e
}

// Name returns "native".
func (e *Engine) Name() string { return "native" }

// connect returns the client for a session with this environment.
func (e *Engine) connect(env environ) (*messages.Client, error) {
	switch {
	case e.opts.MaxRetries < NoRetries:
		return nil, fmt.Errorf("native: Options.MaxRetries is %d: set a positive number, 0 for the default, or NoRetries", e.opts.MaxRetries)
	case e.opts.IdleTimeout < 0:
		return nil, fmt.Errorf("native: Options.IdleTimeout is %v: set a positive duration, or 0 for the default", e.opts.IdleTimeout)
	}
	for name := range env {
		if strings.HasPrefix(name, "ANTHROPIC_") {
			return messages.NewClient(e.config(), env.get)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shared == nil {
		var err error
		if e.shared, err = messages.NewClient(e.config(), environ(nil).get); err != nil {
			return nil, err
		}
	}
	return e.shared, nil
}

func (e *Engine) config() *messages.Config {
	o := &e.opts
	return &messages.Config{
		APIKey: o.APIKey, AuthToken: o.AuthToken, BaseURL: o.BaseURL,
		HTTPClient: o.HTTPClient, ClientOptions: o.ClientOptions, Idle: cmp.Or(o.IdleTimeout, DefaultIdleTimeout),
	}
}

func (e *Engine) maxRetries() int {
	return max(0, cmp.Or(e.opts.MaxRetries, DefaultMaxRetries))
}

// The defaults of [Options].
const (
	DefaultModel       = messages.DefaultModel
	DefaultMaxRetries  = 10
	DefaultIdleTimeout = 5 * time.Minute
	// NoRetries as MaxRetries means that no request is made again.
	NoRetries = -1
)

// priceOf returns the price of a model: the caller's own, else the built-in one.
func (e *Engine) priceOf(model string) (Price, bool) {
	if p, ok := e.opts.Prices[model]; ok {
		return p, true
	}
	spec, ok := messages.SpecOf(model)
	return spec.Price, ok
}

// environ looks variables up in an overlay and then in the process environment.
type environ map[string]string

func (e environ) get(name string) string {
	v, _ := e.lookup(name)
	return v
}

// lookup looks a variable up, empty or not.
func (e environ) lookup(name string) (string, bool) { return kit.Lookup(e)(name) }
