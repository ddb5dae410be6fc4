package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

func lowered(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strings.ToLower(t)
	}
	return out
}

// checkSource refuses requests of web pages from elsewhere: those with a foreign
// Host header, which DNS rebinding causes, and those from other origins.
func (h *HTTPHandler) checkSource(req *http.Request) error {
	local, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	loopback := local != nil && isLoopback(local.String())
	host := hostOf(req.Host)
	switch {
	case len(h.opts.AllowedHosts) > 0:
		if !slices.Contains(h.opts.AllowedHosts, "*") && !slices.Contains(h.opts.AllowedHosts, host) {
			return fmt.Errorf("forbidden Host header %q", req.Host)
		}
	case loopback && !isLoopback(host):
		return fmt.Errorf("forbidden Host header %q", req.Host)
	}
	for _, origin := range req.Header.Values("Origin") {
		if !h.allowsOrigin(strings.ToLower(origin), req.Host, loopback) {
			return fmt.Errorf("forbidden Origin header %q", origin)
		}
	}
	return nil
}

func (h *HTTPHandler) allowsOrigin(origin, host string, loopback bool) bool {
	if slices.Contains(h.opts.AllowedOrigins, "*") || slices.Contains(h.opts.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null" among others
	}
	return u.Host == strings.ToLower(host) || loopback && isLoopback(u.Host)
}

// hostOf returns the host in lower case, without port and brackets.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

func isLoopback(hostport string) bool {
	host := hostOf(hostport)
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// A httpRequest describes a request.
type httpRequest struct {
	v20260728 bool // the request follows 2026-07-28
	opens     bool // it may open a session: each request without one does so, and a batch may initialize
	streams   bool // its reply is an open stream
	more      int  // messages of a batch after the first
}

// read reads the body of a request, which it bounds, and describes the request. It
// puts the request's id into a header for the handlers.
func (h *HTTPHandler) read(w http.ResponseWriter, req *http.Request) (httpRequest, int, error) {
	req.Header.Del(requestIDHeader) // not for clients
	info := httpRequest{v20260728: req.Header.Get("Mcp-Protocol-Version") >= v20260728}
	if req.Method == http.MethodPost || req.Method == http.MethodGet {
		if err := h.negotiate(req); err != nil {
			return info, http.StatusNotAcceptable, err
		}
	}
	if req.Method != http.MethodPost {
		info.streams = req.Method == http.MethodGet
		return info, 0, nil
	}
	if h.opts.MaxBodyBytes > 0 {
		req.Body = http.MaxBytesReader(w, req.Body, h.opts.MaxBodyBytes)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		if tooLong := new(http.MaxBytesError); errors.As(err, &tooLong) {
			return info, http.StatusRequestEntityTooLarge, fmt.Errorf("the body is longer than %d bytes", tooLong.Limit)
		}
		return info, http.StatusBadRequest, errors.New("the body could not be read")
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	info.opens = !info.v20260728 && req.Header.Get("Mcp-Session-Id") == "" // look may know better
	msgs, batch, err := rpcmsg.Parse(body)
	switch {
	case errors.Is(err, rpcmsg.ErrBatch):
		return info, http.StatusBadRequest, err
	case err != nil: // the library says what is wrong with it
	case batch:
		info.more = max(0, len(msgs)-1)
	case msgs[0].Fault != nil && bytes.Equal(msgs[0].ID, rpcmsg.Null): // it has no id that can be sent back
		return info, http.StatusBadRequest, msgs[0].Fault
	default:
		info.look(req, msgs[0])
	}
	if info.opens && len(body) > maxOpeningBytes {
		return info, http.StatusRequestEntityTooLarge, fmt.Errorf("the body of a request outside of a session is longer than %d bytes", maxOpeningBytes)
	}
	return info, 0, nil
}

// methodListen is the method whose reply is an open stream.
const methodListen = "subscriptions/listen"

// maxOpeningBytes bounds the body of a request that may open a session: the session
// keeps the description of its client.
const maxOpeningBytes = 64 << 10

// look describes a POST request.
func (info *httpRequest) look(req *http.Request, m *rpcmsg.Message) {
	if m.ID != nil {
		req.Header.Set(requestIDHeader, string(m.ID))
	}
	hasSession := req.Header.Get("Mcp-Session-Id") != ""
	info.v20260728 = info.v20260728 || !hasSession && metaVersion(m) >= v20260728
	info.opens = info.opens && !info.v20260728
	info.streams = m.Method == methodListen
}

// metaVersion returns the protocol version in the _meta of a request, "" if there is none.
func metaVersion(m *rpcmsg.Message) string {
	raw := m.Param("_meta")
	if !bytes.Contains(raw, []byte(mcp.MetaKeyProtocolVersion)) {
		return ""
	}
	var meta struct {
		Version string `json:"io.modelcontextprotocol/protocolVersion"`
	}
	if json.Unmarshal(raw, &meta) != nil {
		return ""
	}
	return meta.Version
}

// negotiate checks that the client accepts the reply. It then replaces the Accept
// header, because the library refuses a missing header and accepts a weight of 0.
func (h *HTTPHandler) negotiate(req *http.Request) error {
	const stream, plain = "text/event-stream", "application/json"
	accept := req.Header.Values("Accept")
	if !accepts(accept, stream) && !(h.opts.JSONResponse && req.Method == http.MethodPost && accepts(accept, plain)) {
		return fmt.Errorf("the answer is %s, which the Accept header does not allow", stream)
	}
	req.Header.Set("Accept", plain+", "+stream)
	return nil
}

// accepts reports whether the values of an Accept header allow a media type (RFC
// 9110, section 12.5.1). Of several matching ranges the most specific applies; without
// a range everything is allowed.
func accepts(values []string, mediaType string) bool {
	major, _, _ := strings.Cut(mediaType, "/")
	none, best, ok := true, 0, false
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			none = false
			name, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			specific := map[string]int{mediaType: 3, major + "/*": 2, "*/*": 1}[name]
			if specific == 0 || specific < best {
				continue
			}
			weight := 1.0
			if q, has := params["q"]; has {
				if weight, err = strconv.ParseFloat(q, 64); err != nil {
					continue
				}
			}
			ok = specific == best && ok || weight > 0
			best = specific
		}
	}
	return none || ok
}
