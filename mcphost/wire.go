package mcphost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/jsonl"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// The handshake's methods: they are never cancelled on the wire.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodListen     = "subscriptions/listen"
	methodCancelled  = "notifications/cancelled"

	methodInitialized = "notifications/initialized"
)

const (
	// noiseKept and noiseLine bound what is kept of lines that are no messages.
	noiseKept = 5
	noiseLine = 300
	// maxErrorText and maxErrorData are how long the message and the data of a server's error may be, in bytes.
	maxErrorText = 64 << 10
	maxErrorData = 1 << 20
)

// A carrier moves messages for a wire. What arrives it hands to the wire's
// receive, noise, oversized and broken.
type carrier interface {
	// send sends one message. It returns when the message is on its way, or
	// ctx ends. An error means that this message failed, not the connection.
	send(ctx context.Context, m *outgoing) error
	// close ends the carrier and waits for its goroutines. It is bounded.
	close() error
}

// An outgoing is a message to the server.
type outgoing struct {
	data   []byte
	method string // of a request or notification; empty for a reply
	id     int64  // of a request; 0 otherwise
	params json.RawMessage
	call   *callScope // of a tool call; nil otherwise
}

// A callScope goes with the context of a request and comes back with what the
// library would not tell: the raw result, whether the request was sent.
type callScope struct {
	headers map[string]string // for the HTTP request
	raw     json.RawMessage   // the result; valid once the call returned without error
	refusal *jsonrpc.Error    // the server's error; valid once the call returned with one
	sent    atomic.Bool       // the request may have reached the server
}

// unsentIf takes back that a request may have reached the server.
func (m *outgoing) unsentIf(never bool) {
	if never && m.call != nil {
		m.call.sent.Store(false)
	}
}

// checkHeaders reports headers of a call that cannot be sent.
func (m *outgoing) checkHeaders() error {
	if m.call == nil {
		return nil
	}
	for k, v := range m.call.headers {
		if !validHeader(k, v) {
			return fmt.Errorf("header %q of the call: invalid name or value", k)
		}
	}
	return nil
}

type callScopeKey struct{}

func withCallScope(ctx context.Context, s *callScope) context.Context {
	return context.WithValue(ctx, callScopeKey{}, s)
}

// A pending is a request that is not answered yet.
type pending struct {
	method string
	scope  *callScope
	reply  chan error // of a request of this package's own: gets the server's error, or nil; nil otherwise
}

// A wire is the connection that the library's client session reads and writes
// ([mcp.Connection]), over any carrier. It is where a server's faults are
// contained: what is no message is noise, a reply to nobody is dropped, a reply
// that cannot be used fails the call that it answers, and the results that the
// library would reject whole because of one element never reach it: they are
// kept raw for those who asked, see callScope.
type wire struct {
	log     *slog.Logger
	often   *limitedLog // of what a server may repeat as often as it likes
	mask    *secret.Masker
	car     carrier
	handle  notifications
	probing time.Duration // how long server/discover may take; zero for ever

	in   chan jsonrpc.Message // to Read; unbuffered, so that what came before the end is read before it
	done chan struct{}        // closed when broken or closed
	lost chan struct{}        // closed when a new connection is needed; what is under way may still be answered
	once sync.Once
	lose sync.Once
	err  error // why done is closed
	left error // why lost is closed

	heard    atomic.Int64   // messages received
	asks     atomic.Int64   // requests of this package's own
	refusing atomic.Int64   // refusals of requests of the server on their way
	unread   atomic.Int64   // requests that are not even refused, since the server last read an answer
	dropped  atomic.Int64   // requests of the server for which there was no room
	wg       sync.WaitGroup // of refusals
	ctx      context.Context

	mu        sync.Mutex // guards the rest
	pending   map[int64]*pending
	asked     map[string]*inbound // the server's requests under way, by id
	askedN    int                 // how many there are, with those whose reply is being sent
	askedSize int                 // what they hold, in bytes
	handshake map[int64]bool      // ids of initialize and server/discover
	lists     map[string]bool     // the methods that list and were answered
	probe     probe
	noiseN    int
	noiseHead []string
}

// notifications are called from the goroutine that reads, in order. They must
// not block.
type notifications struct {
	progress        func(*mcp.ProgressNotificationParams)
	log             func(*mcp.LoggingMessageParams)
	toolsChanged    func()
	listChanged     func(method string) // of resources or prompts
	resourceUpdated func(uri string)
}

func newWire(ctx context.Context, log *slog.Logger, mask *secret.Masker, handle notifications, probing time.Duration) *wire {
	return &wire{
		ctx:       context.WithoutCancel(ctx), // of messages that nobody waits for; the carrier ends them
		log:       log,
		often:     &limitedLog{log: log},
		mask:      mask,
		handle:    handle,
		probing:   probing,
		in:        make(chan jsonrpc.Message),
		done:      make(chan struct{}),
		lost:      make(chan struct{}),
		pending:   map[int64]*pending{},
		asked:     map[string]*inbound{},
		lists:     map[string]bool{},
		handshake: map[int64]bool{},
	}
}

// Connect implements [mcp.Transport].
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID implements [mcp.Connection].
func (w *wire) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-w.in:
		return m, nil
	case <-w.done:
		return nil, w.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection]. An error from here would make the library
// give up the connection, so a request that cannot be sent is answered instead.
func (w *wire) Write(ctx context.Context, msg jsonrpc.Message) error {
	select {
	case <-w.done:
		return w.err
	default:
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	out := &outgoing{data: data}
	switch m := msg.(type) {
	case *jsonrpc.Response:
		defer w.replying(m.ID)() // not before it is sent: a server that does not read must not be able to ask for ever more
		w.answer(ctx, "replying to the server", out)
		return nil
	case *jsonrpc.Request:
		out.method, out.params = m.Method, m.Params
		if !m.IsCall() {
			if m.Method == methodCancelled && !w.mayCancel(m.Params) || m.Method == methodInitialized && w.answeredLate() != nil {
				return nil
			}
			w.report("sending "+m.Method, w.car.send(ctx, out))
			return nil
		}
		id, ok := m.ID.Raw().(int64)
		if !ok {
			return fmt.Errorf("mcphost: request id %v is not the library's", m.ID.Raw())
		}
		out.id = id
		return w.request(ctx, out)
	}
	return nil
}

func (w *wire) request(ctx context.Context, out *outgoing) error {
	scope, _ := ctx.Value(callScopeKey{}).(*callScope) // absent: nobody asked
	out.call = scope
	p := &pending{method: out.method, scope: scope}
	w.mu.Lock()
	w.pending[out.id] = p
	if out.method == methodInitialize || out.method == methodDiscover {
		w.handshake[out.id] = true
	}
	if out.method == methodDiscover {
		w.beginProbe(out)
	}
	w.mu.Unlock()
	err := w.car.send(ctx, out)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		if scope == nil || !scope.sent.Load() {
			w.take(out.id)
		} // else it stays, so that its cancellation goes out: see mayCancel
		return ctx.Err()
	}
	w.fail(out.id, err)
	return nil
}

func (w *wire) report(what string, err error) {
	if err != nil {
		w.log.Debug("message not delivered", "what", what, "error", maskError(w.mask, err))
	}
}

// mayCancel says whether notifications/cancelled goes out: not for the
// handshake, which the protocol forbids, and not for a request that was never
// sent or is answered.
func (w *wire) mayCancel(params json.RawMessage) bool {
	var p struct {
		RequestID int64 `json:"requestId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.handshake[p.RequestID] {
		delete(w.pending, p.RequestID)
		return false
	}
	call, ok := w.pending[p.RequestID]
	delete(w.pending, p.RequestID)
	return ok && (call.scope == nil || call.scope.sent.Load())
}

// take removes and returns the pending request with an id.
func (w *wire) take(id int64) *pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pending[id]
	if p == nil {
		return nil
	}
	delete(w.pending, id)
	if id == w.probe.id && w.probe.timer != nil {
		w.probe.timer.Stop()
	}
	return p
}

// fail answers the request with an id with an error, if it is still pending.
func (w *wire) fail(id int64, err error) {
	if p := w.take(id); p != nil {
		w.deliver(p, id, nil, err)
	}
}

// deliver passes the answer to a request on to who made it.
func (w *wire) deliver(p *pending, id int64, result json.RawMessage, err error) {
	if p.reply != nil {
		p.reply <- err // never blocks: the channel holds the one reply
		return
	}
	w.push(response(id, result, err))
}

// ask makes a request that the library has no part in, and waits for the answer.
func (w *wire) ask(ctx context.Context, method string, params json.RawMessage) error {
	id := askID + w.asks.Add(1)
	jid, _ := jsonrpc.MakeID(float64(id)) // a float64 always makes an id
	data, err := jsonrpc.EncodeMessage(&jsonrpc.Request{ID: jid, Method: method, Params: params})
	if err != nil {
		return err
	}
	p := &pending{method: method, reply: make(chan error, 1)}
	w.mu.Lock()
	w.pending[id] = p
	w.mu.Unlock()
	if err := w.car.send(ctx, &outgoing{data: data, method: method, id: id, params: params}); err != nil {
		w.take(id)
		return err
	}
	select {
	case err := <-p.reply:
		return err
	case <-w.done:
		return w.err
	case <-ctx.Done():
		w.take(id)
		return ctx.Err()
	}
}

// failAll answers all pending requests with an error.
func (w *wire) failAll(err error) {
	w.mu.Lock()
	ids := make([]int64, 0, len(w.pending))
	for id := range w.pending {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	for _, id := range ids {
		w.fail(id, err)
	}
}

func (w *wire) push(m jsonrpc.Message) {
	select {
	case w.in <- m:
	case <-w.done:
	}
}

// response builds what the library takes for the server's reply.
func response(id int64, result json.RawMessage, err error) *jsonrpc.Response {
	jid, _ := jsonrpc.MakeID(float64(id)) // a float64 always makes an id
	return &jsonrpc.Response{ID: jid, Result: result, Error: err}
}

// receive takes what arrived as one message or batch. It reports false for what
// is neither: noise.
func (w *wire) receive(data []byte) bool {
	if data[0] != '{' && data[0] != '[' {
		return false
	}
	data = validUTF8(data)
	msgs, _, err := rpcmsg.Parse(data)
	if err != nil {
		// Perhaps a reply that is broken somewhere: then its call is lost, and
		// that is all.
		if id, ok := w.pendingID(data, data); ok {
			w.fail(id, fmt.Errorf("the reply cannot be read: %w", err))
			return true
		}
		return false
	}
	known := false
	for _, m := range msgs {
		known = w.message(m) || known
	}
	if known {
		w.heard.Add(1)
	}
	return known
}

func (w *wire) message(m *rpcmsg.Message) bool {
	switch {
	case m.Reply():
		w.reply(m)
	case m.Notification():
		w.notification(m)
	case m.Fault != nil && jsonscan.IsNull(m.ID): // its id cannot be used
		w.log.Debug("message of the server cannot be used", "error", m.Fault.Message)
	case m.Method != "" && m.ID != nil:
		w.serverRequest(m)
	case m.ID != nil && m.Method == "":
		id, ok := w.number(m.ID)
		if ok {
			w.fail(id, errors.New("the reply has neither a result nor an error"))
		}
		return ok
	default:
		return false
	}
	return true
}

func (w *wire) reply(m *rpcmsg.Message) {
	id, ok := w.number(m.ID)
	if jsonscan.IsNull(m.ID) && m.Error != nil {
		// The server could not make out which request this is about.
		if id, ok = w.onlyPending(); !ok {
			w.often.Warn("the server reports an error of no request in particular", "error", w.mask.Head(m.Error, noiseLine))
		}
	}
	if !ok {
		w.log.Debug("reply to no request thrown away", "id", w.mask.Head(m.ID, noiseLine))
		return
	}
	p := w.take(id)
	if p == nil { // late, doubled or made up
		w.log.Debug("reply to no request thrown away", "id", id)
		w.lateAnswer(id, m.Result)
		return
	}
	if m.Error != nil && !jsonscan.IsNull(m.Error) {
		e := wireError(m.Error)
		if p.scope != nil {
			p.scope.refusal = e // the library mistakes some codes for its own
		}
		w.deliver(p, id, nil, e)
		return
	}
	result := m.Result
	if strings.HasSuffix(p.method, "/list") {
		w.mu.Lock()
		w.lists[p.method] = true
		w.mu.Unlock()
	}
	if p.scope != nil {
		p.scope.raw = result
		result = placeholder(p.method)
	}
	if p.method == methodInitialize || p.method == methodDiscover {
		result = w.trimHandshake(result)
	}
	if p.method == methodInitialize {
		if s, ok := w.car.(interface{ initialized(json.RawMessage) }); ok {
			s.initialized(result)
		}
	}
	w.deliver(p, id, result, nil)
}

const (
	// maxInstructions is how much is kept of a server's instructions, in bytes.
	maxInstructions = 64 << 10
	// maxHandshake is how long the answer to the handshake may be, and each other member of it, before it is cut.
	maxHandshake = 256 << 10
)

// trimHandshake cuts the answer to a handshake that is longer than one can sensibly be: its instructions, and without a
// trace but in the log what else is too long.
func (w *wire) trimHandshake(result json.RawMessage) json.RawMessage {
	if len(result) <= maxHandshake {
		return result
	}
	cut := map[string]json.RawMessage{}
	_ = jsonscan.Object(result, func(name []byte, value json.RawMessage) { // any other value has no members
		key := string(name)
		if key == "instructions" {
			value = cutText(value, maxInstructions)
		}
		if len(value) > maxHandshake || len(key) > noiseLine {
			w.often.Warn("member of the answer to the handshake left out: it is too long", "member", w.mask.Head([]byte(key), noiseLine), "bytes", len(value))
			return
		}
		cut[key] = bytes.Clone(value)
	})
	w.log.Warn("answer to the handshake cut", "bytes", len(result), "limit", maxHandshake)
	short, err := json.Marshal(cut)
	if err != nil {
		return result
	}
	return short
}

// cutText is a JSON string of which no more than about n bytes are left; what is no string is returned as it is.
func cutText(raw json.RawMessage, n int) json.RawMessage {
	if len(raw) <= n || raw[0] != '"' {
		return raw
	}
	for end := n; end > n-len(`\ud83d\ude00`); end-- { // an escape is not cut in two
		var text string
		if json.Unmarshal(append(bytes.Clone(raw[:end]), '"'), &text) != nil {
			continue
		}
		if short, err := json.Marshal(text + "…"); err == nil {
			return short
		}
	}
	return json.RawMessage(`""`)
}

// served reports whether a request with this method, which lists, was answered.
func (w *wire) served(method string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lists[method]
}

// onlyPending is the one request that waits for an answer, if there is just one.
func (w *wire) onlyPending() (id int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for pid, p := range w.pending {
		if p.method != methodListen { // whose answer is its end
			id = pid
			n++
		}
	}
	return id, n == 1
}

// placeholder is the smallest result that the library takes in place of the one
// kept raw.
func placeholder(method string) json.RawMessage {
	switch method {
	case "tools/call":
		return json.RawMessage(`{"content":[]}`)
	case "tools/list":
		return json.RawMessage(`{"tools":[]}`)
	case "resources/list":
		return json.RawMessage(`{"resources":[]}`)
	case "resources/templates/list":
		return json.RawMessage(`{"resourceTemplates":[]}`)
	case "prompts/list":
		return json.RawMessage(`{"prompts":[]}`)
	}
	return json.RawMessage(`{}`)
}

// number finds our id in a reply's: servers are known to answer 3 with "3".
func (w *wire) number(raw json.RawMessage) (int64, bool) {
	if s, ok := jsonscan.Text(raw); ok {
		raw = json.RawMessage(s)
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}

func wireError(raw json.RawMessage) *jsonrpc.Error {
	var e struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeInternalError}
	if err := json.Unmarshal(raw, &e); err != nil {
		out.Message = clip.Text(string(raw), noiseLine)
		return out
	}
	var code float64
	if json.Unmarshal(e.Code, &code) == nil {
		out.Code = int64(code)
	}
	if json.Unmarshal(e.Message, &out.Message) != nil || out.Message == "" {
		out.Message = clip.Text(string(raw), noiseLine)
	}
	out.Data = e.Data
	return shortened(out)
}

// shortened bounds a server's error, which ends up in statuses, logs and results.
func shortened(e *jsonrpc.Error) *jsonrpc.Error {
	if n := len(e.Message) - maxErrorText; n > 0 {
		e.Message = clip.Text(e.Message[:maxErrorText+1], maxErrorText) + fmt.Sprintf(" (%d bytes left out)", n)
	}
	if len(e.Data) > maxErrorData {
		e.Message += fmt.Sprintf(" (with %d bytes of data, which are left out)", len(e.Data))
		e.Data = nil
	}
	return e
}

// notification handles what a server says unasked. Nothing but the cancellation of a request
// under way goes to the library, whose queue has no bound.
func (w *wire) notification(m *rpcmsg.Message) {
	var err error
	switch m.Method {
	case methodCancelled:
		w.cancelled(m)
	case mcpserver.MethodProgress:
		err = decodeTo(m.Params, w.handle.progress)
	case mcpserver.MethodMessage:
		err = decodeTo(m.Params, w.handle.log)
	case mcpserver.MethodToolListChanged:
		w.handle.toolsChanged()
	case mcpserver.MethodResourceListChanged, mcpserver.MethodPromptListChanged:
		w.handle.listChanged(m.Method)
	case mcpserver.MethodResourceUpdated:
		err = decodeTo(m.Params, func(p *mcp.ResourceUpdatedNotificationParams) { w.handle.resourceUpdated(p.URI) })
	}
	if err != nil {
		w.log.Debug("notification of the server cannot be read", "method", m.Method, "error", w.mask.Head([]byte(err.Error()), noiseLine))
	}
}

func decodeTo[T any](params json.RawMessage, f func(*T)) error {
	if params == nil {
		return errors.New("no params")
	}
	v := new(T)
	if err := json.Unmarshal(params, v); err != nil {
		return err
	}
	f(v)
	return nil
}

// noise takes a line that is no message.
func (w *wire) noise(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noiseN++
	if len(w.noiseHead) >= noiseKept {
		return
	}
	head := w.mask.Head(line, noiseLine)
	w.noiseHead = append(w.noiseHead, head)
	if w.noiseN == 1 {
		w.log.Warn("the server writes to stdout what is no message", "line", head)
	}
}

func (w *wire) noiseSeen() (n int, head []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.noiseN, w.noiseHead[:len(w.noiseHead):len(w.noiseHead)]
}

// oversized takes a message above the limit: it fails the call that it answers,
// or, if that cannot be told, all that are pending.
func (w *wire) oversized(l jsonl.Line, limit int) {
	err := tooLarge(fmt.Sprintf("%d bytes", l.Size), limit)
	w.often.Warn("message of the server thrown away", "error", err)
	if id, ok := w.pendingID(l.Head, l.Tail); ok {
		w.fail(id, err)
		return
	}
	switch {
	case !bytes.HasPrefix(l.Head, []byte("{")) && !bytes.HasPrefix(l.Head, []byte("[")):
		w.noise(l.Head)
		return
	case l.Head[0] == '[' || bytes.Contains(l.Head, []byte(`"method"`)):
		return // no reply
	}
	w.failAll(err)
}

// pendingID finds the id of a pending request in a reply of which only the two
// ends can be relied on.
func (w *wire) pendingID(head, tail []byte) (int64, bool) {
	for _, raw := range []json.RawMessage{idAtHead(head), idAtTail(tail)} {
		if raw == nil {
			continue
		}
		if id, ok := w.number(raw); ok {
			w.mu.Lock()
			_, ok = w.pending[id]
			w.mu.Unlock()
			if ok {
				return id, true
			}
		}
	}
	return 0, false
}

// broken ends the wire because the carrier came to an end.
func (w *wire) broken(err error) {
	w.end(fmt.Errorf("%w: %w", ErrConnectionLost, err))
}

// leave tells whoever owns the wire that a new connection is needed, and why. What is under way may still be answered.
func (w *wire) leave(why error) {
	w.lose.Do(func() {
		w.left = why
		close(w.lost)
	})
}

func (w *wire) end(err error) {
	w.once.Do(func() {
		w.err = err
		close(w.done)
	})
}

// Close implements [mcp.Connection]. It does not wait: the library calls it
// under a lock. The carrier is closed by the link.
func (w *wire) Close() error {
	w.end(io.EOF)
	return nil
}
