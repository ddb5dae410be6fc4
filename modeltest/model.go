package modeltest

import (
	"errors"
	"net/http"
)

// TB is what a [Model] needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Options configures a [Model]. The zero value, like a nil pointer, means the
// defaults.
type Options struct {
	// TB is the test that the model works for. If set, the test is failed by each
	// request that the real API would refuse (unless AllowViolations), and what
	// Serve started is closed at its end.
	TB TB
	// AllowViolations says that refused requests don't fail the test.
	AllowViolations bool
	// Turns are the answers, in order, to requests that Script has none for.
	Turns []Turn
	// Key tells conversations apart; nil: by the text of the first user message.
	Key func(*Request) string
	// Script returns the answers to one conversation. It is called once for each
	// key. nil, or a nil result: the requests are answered from Turns, which all
	// such conversations share.
	Script func(key string) []Turn
	// KeepRequests is how many of the latest requests are kept for Requests.
	// If zero, all are; if negative, none.
	KeepRequests int
	// CountTokens estimates a request's input tokens. nil: a quarter of its bytes.
	CountTokens func(*Request) int
}

// A Model is a scripted Messages API.
type Model struct{}

// New returns a model that answers with the turns, one for each request, in
// order. t may be nil.
func New(t TB, turns ...Turn) *Model { return NewModel(&Options{TB: t, Turns: turns}) }

// NewModel returns a model.
func NewModel(o *Options) *Model { return &Model{} }

// Offline returns the offline model.
func Offline() *Model { return &Model{} }

// Add appends turns to the script.
func (m *Model) Add(turns ...Turn) {}

// Left returns how many turns of the shared script have not been used.
func (m *Model) Left() int { return 0 }

// Requests returns the POST /v1/messages requests so far, oldest first, refused
// ones too.
func (m *Model) Requests() []*Request { return nil }

// Last returns the latest of Requests, nil if there is none.
func (m *Model) Last() *Request { return nil }

// Violations returns what was wrong with the refused requests, oldest first.
func (m *Model) Violations() []*Violation { return nil }

// A Violation is a request that the real API would have refused.
type Violation struct {
	Request *Request
	Status  int    // of the response: mostly 400
	Type    string // the API's error type
	Message string // names the path of what is wrong
}

// Error returns the message.
func (v *Violation) Error() string { return v.Message }

// Client returns an HTTP client that reaches the model without a socket, under
// any URL.
func (m *Model) Client() *http.Client { return &http.Client{Transport: m} }

// RoundTrip answers a request without a socket.
func (m *Model) RoundTrip(req *http.Request) (*http.Response, error) {
	return nil, errors.New("modeltest: not implemented yet")
}

// ServeHTTP answers a request.
func (m *Model) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	http.Error(w, "not implemented yet", http.StatusNotImplemented)
}

// A Server is a model on a loopback port.
type Server struct {
	URL string // http://127.0.0.1:port
}

// Serve starts a server on a free loopback port.
func (m *Model) Serve() (*Server, error) { return nil, errors.New("modeltest: not implemented yet") }

// Close stops the server and breaks its connections. It may be called more than once.
func (s *Server) Close() error { return nil }

// Signature is the signature of a thinking block with this text.
func Signature(thinking string) string { return "" }

const statusOverloaded = 529

// apiError is the error object of the Messages API.
type apiError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}
