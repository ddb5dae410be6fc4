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

// checkSource refuses what a web page sends that has no business here: requests
// under a name that is not the server's, which DNS rebinding makes, and
// requests from other origins.
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

// hostOf is a host in small letters without its port and brackets.
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

// A httpRequest is what serve must know of a request.
type httpRequest struct {
	modern  bool // it follows 2026-07-28
	opens   bool // it may open a session: for the library each without one does, and a batch can initialize
	streams bool // its answer is a stream that stays open
	more    int  // messages of a batch, one aside
}

// read bounds and reads the body of a request and finds out what it is. It also
// notes the request's id where the handlers look for it.
func (h *HTTPHandler) read(w http.ResponseWriter, req *http.Request) (httpRequest, int, error) {
	req.Header.Del(requestIDHeader) // ours to set
	info := httpRequest{modern: req.Header.Get("Mcp-Protocol-Version") >= v20260728}
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
	info.opens = !info.modern && req.Header.Get("Mcp-Session-Id") == "" // look may know better
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

// methodListen is answered with a stream that stands open.
const methodListen = "subscriptions/listen"

// maxOpeningBytes bounds the body of a request that may open a session, which keeps
// what its client says of itself for as long as it is open.
const maxOpeningBytes = 64 << 10

// look finds out what a POST is.
func (info *httpRequest) look(req *http.Request, m *rpcmsg.Message) {
	if m.ID != nil {
		req.Header.Set(requestIDHeader, string(m.ID))
	}
	hasSession := req.Header.Get("Mcp-Session-Id") != ""
	info.modern = info.modern || !hasSession && metaVersion(m) >= v20260728
	info.opens = info.opens && !info.modern
	info.streams = m.Method == methodListen
}

// metaVersion is the protocol version in the _meta of a request, "" if it has none.
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

// negotiate checks that the client takes what it will be answered with. Then it
// says so in the form that the library knows: for that a header that is missing
// refuses all, and one with a weight of 0 accepts.
func (h *HTTPHandler) negotiate(req *http.Request) error {
	const stream, plain = "text/event-stream", "application/json"
	accept := req.Header.Values("Accept")
	if !accepts(accept, stream) && !(h.opts.JSONResponse && req.Method == http.MethodPost && accepts(accept, plain)) {
		return fmt.Errorf("the answer is %s, which the Accept header does not allow", stream)
	}
	req.Header.Set("Accept", plain+", "+stream)
	return nil
}

// accepts reports whether the values of an Accept header allow a media type
// (RFC 9110, section 12.5.1): of several ranges that match, the most specific
// counts; without a range everything is allowed.
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
