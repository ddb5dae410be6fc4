package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolresult"
)

// A session is a conversation. The goroutine run owns the conversation. What others use is behind mu.
type session struct {
	engine    *Engine
	opts      *agent.Options
	api       *messages.Client
	env       environ
	shared    *mcphost.Host // the caller's; nil if there is none
	output    *structured   // nil for free text
	settings  *mcpconfig.Settings
	fallbacks []string // the models of Options.FallbackModel
	// The hooks of settings files and of the program. opts.Hooks has both, in this order.
	fileHooks, programHooks agent.Hooks
	hooks                   *kit.HookRunner

	life context.Context // ends with Close
	stop context.CancelCauseFunc
	done chan struct{} // closed when run has returned
	out  chan agent.Message
	wake chan struct{} // holds a token when inbox or ended have changed
	err  error         // why the session ended by itself; set before out is closed

	// Owned by run.
	history      transcript.History
	accepted     transcript.Position // the part of the history that the API has accepted
	table        *toolset.Table
	finder       toolset.Finder
	ownTools     []*toolset.Tool      // the engine's own beside the search; each stays, so that requests stay the same
	store        *toolresult.Store    // results that are too large for the model
	definitions  *toolset.Definitions // the tools of the latest request
	commandList  commandList
	system       []string          // the engine's part of the system prompt; constant after the first request
	prompt       []json.RawMessage // the blocks of the system prompt; nil before the first request
	quarantined  map[string]string
	totals       map[string]agent.ModelUsage
	cost         float64
	results      int
	started      bool               // the first turn has begun
	reviewed     *permission.Policy // the policy that reviewRules has reviewed last
	misspelt     map[string]bool    // the rules that it has reported
	greeted      bool               // the first init message was sent
	early        []agent.Message    // messages that wait for it
	model        string
	thoughts     transcript.ThoughtPolicy
	startContext []string // context of hooks for the first turn
	delivered    delivered
	given        transcript.Loaded // what came of Options.History

	stored atomic.Bool // store has a text
	named  namedURIs

	mu        sync.Mutex // guards the rest
	own       *mcphost.Host
	policy    *permission.Policy
	bound     boundPolicy
	context   *contextState
	wantModel string // the model that was asked for
	fallback  int    // how many of fallbacks were tried in its place; 0 at the start of a turn
	inbox     []*agent.Input
	ended     bool                    // no input follows
	busy      bool                    // an input was taken from inbox and has no result yet
	interrupt context.CancelCauseFunc // ends the running turn; nil between turns
	// interrupted is set by an interrupt between an input and its turn: the turn ends as soon as it begins.
	interrupted bool
	leftOut     []mcphost.RejectedTool // of the table; never modified
	closing     sync.Once
}

// hosts returns the session's hosts in the order of their precedence.
func (s *session) hosts() []*mcphost.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc([]*mcphost.Host{s.own, s.shared}, func(h *mcphost.Host) bool { return h == nil })
}

// servers yields the servers of all hosts. A server may hide another of its name, which follows.
func (s *session) servers() iter.Seq2[*mcphost.Host, mcphost.ServerStatus] {
	return func(yield func(*mcphost.Host, mcphost.ServerStatus) bool) {
		for _, h := range s.hosts() {
			for _, st := range h.Status() {
				if !yield(h, st) {
					return
				}
			}
		}
	}
}

// A hostedServer is a server of a host.
type hostedServer struct {
	host *mcphost.Host
	name string
}

// forbidden reports whether a rule denies everything of a server. The model does not learn of such a server.
func forbidden(policy *permission.Policy, server string) bool {
	return policy.Hidden(permission.Request{Tool: toolname.Server(server) + toolname.Separator, Server: server})
}

// serversWith returns the connected servers whose capabilities match, without forbidden ones, sorted by name.
func (s *session) serversWith(match func(*mcp.ServerCapabilities) bool) []hostedServer {
	var found []hostedServer
	seen := map[string]bool{}
	policy := s.permissions()
	for h, st := range s.servers() {
		if !seen[st.Name] && st.Status == mcphost.StatusConnected && st.Capabilities != nil && match(st.Capabilities) && !forbidden(policy, st.Name) {
			found = append(found, hostedServer{h, st.Name})
		}
		seen[st.Name] = true
	}
	slices.SortFunc(found, func(a, b hostedServer) int { return strings.Compare(a.name, b.name) })
	return found
}

// notify wakes run.
func (s *session) notify() {
	select {
	case s.wake <- struct{}{}:
	default: // a token is there
	}
}

// emit sends a message to the program. It waits for room until the session is closed. Only run and what it
// waits for call it before out is closed.
func (s *session) emit(m agent.Message) {
	if s.life.Err() != nil {
		return
	}
	if _, ok := m.(*agent.SystemInit); !ok && !s.greeted {
		s.early = append(s.early, m)
		return
	}
	select {
	case s.out <- m:
	case <-s.life.Done():
	}
}

// note emits a system message. fields must encode as an object.
func (s *session) note(subtype string, fields any) {
	m, err := agent.NewSystem(subtype, s.opts.SessionID, uuid.NewString(), fields)
	if err != nil {
		s.opts.Logger.Error("message could not be encoded", "subtype", subtype, "error", err)
		return
	}
	s.emit(m)
}

// informational is the payload of an informational message.
type informational struct {
	Content   string `json:"content"`
	Level     string `json:"level"`
	ToolUseID string `json:"tool_use_id,omitempty"`
	Tag       string `json:"tag,omitempty"`
}

// inform gives the program a notice, unless it is empty.
func (s *session) inform(text, tag string) {
	if text != "" {
		s.note("informational", informational{Content: text, Level: "notice", Tag: tag})
	}
}

// warn logs a warning and gives it to the program.
func (s *session) warn(tag, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.opts.Logger.Warn(text, "session", s.opts.SessionID)
	s.note("informational", informational{Content: text, Level: "warning", Tag: tag})
}

// wantedModel returns the model of the next request.
func (s *session) wantedModel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inForce()
}

// findHost returns the host of a server.
func (s *session) findHost(name string) (*mcphost.Host, error) {
	var names []string
	for h, st := range s.servers() {
		if st.Name == name {
			return h, nil
		}
		names = append(names, st.Name)
	}
	return nil, fmt.Errorf("%w: %q (there are %q)", mcphost.ErrUnknownServer, name, names)
}

// stopped waits for the session's goroutine and reports whether it has returned in time.
func (s *session) stopped(within time.Duration) bool {
	select {
	case <-s.done:
		return true
	case <-time.After(within):
		return false
	}
}

// A turn is the answer to an input and to those that arrive while it runs.
type turn struct {
	s           *session
	ctx         context.Context // ends with an interrupt or the session
	cancel      context.CancelCauseFunc
	began       time.Time
	apiTime     time.Duration
	start       transcript.Position // the history before the turn
	announced   *toolset.Announced  // what the model knew of the servers then
	asked       int                 // requests to the model
	askedBefore int                 // requests in the unfinished turn of Options.History
	clock       *time.Timer         // ends the turn; nil without a limit
	aborted     bool                // the result reports the interrupt
	usage       agent.Usage
	last        *messages.Response // the latest complete response
	uuids       []string
	// Unusable responses in a row.
	malformed, paused int
	sent              []string           // UUIDs of the messages with the latest response
	supersedes        []string           // UUIDs of the messages that the next assistant message replaces
	orphans           []*call            // the calls in those messages
	broken            *messages.Response // the response in those messages
	given             json.RawMessage    // the structured answer
	badOutputs        int                // answers without a valid one
	continued         int                // how often a Stop hook has made the model go on
	stopped           atomic.Bool        // no further call is made

	mu        sync.Mutex // guards the rest
	denials   []agent.PermissionDenial
	context   []string // of hooks, for the model
	stoppedBy string   // why a hook stops the turn; empty if none does
}

// errTurnTimeout is the cause of a turn's end by Options.TurnTimeout.
var errTurnTimeout = errors.New("native: the turn took too long")

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// A call is a tool call of the model.
type call struct {
	use      *agent.ToolUseBlock
	inputErr error         // why its input cannot be used; nil if it can
	tool     *toolset.Tool // nil if it is not resolved or does not exist
}

// An answer is the outcome of a call.
type answer struct {
	result *agent.ToolResultBlock
	raw    json.RawMessage        // the tool's own result, for the program
	plain  *agent.ToolResultBlock // result without tool references; nil if it has none
	after  string                 // a text for the model after all results
}

// part returns the answer as it is sent to the model.
func (a *answer) part() transcript.Part {
	p := transcript.Part{Raw: transcript.EncodeBlock(a.result)}
	if a.plain != nil {
		p.Plain = transcript.EncodeBlock(a.plain)
	}
	return p
}

// errorAnswer answers a call with an error for the model.
func errorAnswer(c *call, text string) *answer {
	if text = strings.ToValidUTF8(text, "\uFFFD"); transcript.IsBlank(text) {
		text = "Unknown error"
	}
	return &answer{
		result: &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: agent.TextContent(toolresult.EscapeHostTags(cutError(text))), IsError: true},
		raw:    transcript.Encode("Error: " + text),
	}
}

// A contextState has the parts of the latest request. It is immutable.
type contextState struct {
	model    string
	table    *toolset.Table
	loaded   func(*toolset.Tool) bool // reports whether the definition of a tool of the table is sent
	system   int                      // bytes of the system prompt
	messages int                      // bytes of the conversation
	counted  int64                    // the API's count of tokens with the response; 0 without a response
}

// namedURIs are the URIs that servers have named in lists and results.
type namedURIs struct {
	mu       sync.Mutex // guards the map
	byServer map[string]map[string]bool
}

func (n *namedURIs) add(server, uri string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byServer == nil {
		n.byServer = map[string]map[string]bool{}
	}
	if n.byServer[server] == nil {
		n.byServer[server] = map[string]bool{}
	}
	if uris := n.byServer[server]; len(uris) < maxNamedURIs && len(uri) <= maxURI {
		uris[uri] = true
	}
}

func (n *namedURIs) has(server, uri string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byServer[server][uri]
}

// addFrom adds the resources in a tool's result.
func (n *namedURIs) addFrom(server string, res *mcpserver.Result) {
	for _, b := range res.Content {
		switch b := b.(type) {
		case *mcp.ResourceLink:
			n.add(server, b.URI)
		case *mcp.EmbeddedResource:
			if b.Resource != nil {
				n.add(server, b.Resource.URI)
			}
		}
	}
}

// maxErrorChars is the longest text of an error of the engine, in characters. Both ends of a longer text
// are kept, as [toolresult.Fit] does for errors of tools.
const maxErrorChars = 10_000

// skip returns the index in text after n characters.
func skip(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// cutError bounds an error's text.
func cutError(text string) string {
	n := utf8.RuneCountInString(text)
	if n <= maxErrorChars {
		return text
	}
	head, tail := skip(text, maxErrorChars/2), skip(text, n-maxErrorChars/2)
	return text[:head] + fmt.Sprintf("\n\n... [%d characters truncated] ...\n\n", n-maxErrorChars) + text[tail:]
}

// inForce returns the model of the next request. The caller holds mu.
func (s *session) inForce() string {
	if s.fallback > 0 {
		return s.fallbacks[s.fallback-1]
	}
	return s.wantModel
}

// revision grows when anything about the servers changes.
func (s *session) revision() uint64 {
	n := uint64(0)
	for _, h := range s.hosts() {
		n += h.Revision()
	}
	return n
}

func (s *session) serverStatus() []mcphost.ServerStatus {
	var all []mcphost.ServerStatus
	for _, st := range s.servers() {
		all = append(all, st)
	}
	slices.SortStableFunc(all, func(a, b mcphost.ServerStatus) int { return strings.Compare(a.Name, b.Name) })
	s.mu.Lock()
	leftOut := s.leftOut
	s.mu.Unlock()
	for _, r := range leftOut { // beside what the hosts had to leave out
		if i := slices.IndexFunc(all, func(st mcphost.ServerStatus) bool { return st.Name == r.Server }); i >= 0 {
			all[i].Rejected = append(all[i].Rejected, r)
		}
	}
	return all
}

// Answers to calls that were not completed.
const (
	textInterrupted = "[Request interrupted by user for tool use]"
	textBrokeOff    = "[The response that made this tool call broke off, so the call was not made]"
	textStopped     = "[The turn was stopped before this tool call was made]"
	textCutOff      = "The input of this tool call was cut off at the limit of max_tokens, so the tool was not run. Make the call again with a shorter input, or split it up."
)

const (
	// maxURITemplate and maxURI bound the templates and URIs that are matched, in bytes.
	maxURITemplate = 4 << 10
	maxURI         = 16 << 10
	// maxNamedURIs bounds the URIs that are remembered of one server.
	maxNamedURIs = 10_000
)
