package mcphost

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type flushWriter interface {
	io.WriteCloser
	Flush() error
}

// coders make the writers of content codings.
var coders = map[string]func(io.Writer) flushWriter{
	"gzip":    func(w io.Writer) flushWriter { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) flushWriter { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) flushWriter { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) flushWriter {
		fw, _ := flate.NewWriter(w, flate.DefaultCompression) // a level that there is
		return fw
	},
}

// A codedWriter codes what a handler answers, whatever the client accepts.
type codedWriter struct {
	http.ResponseWriter
	coding string
	to     flushWriter
}

func (w *codedWriter) WriteHeader(code int) {
	w.Header().Set("Content-Encoding", strings.TrimPrefix(w.coding, "raw "))
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
}

func (w *codedWriter) Write(b []byte) (int, error) {
	if w.to == nil {
		w.Header().Set("Content-Encoding", strings.TrimPrefix(w.coding, "raw "))
		w.to = coders[w.coding](w.ResponseWriter)
	}
	return w.to.Write(b)
}

func (w *codedWriter) Flush() {
	if w.to != nil {
		_ = w.to.Flush()
	}
	w.ResponseWriter.(http.Flusher).Flush()
}

// coded wraps a handler so that it codes all that it answers.
func coded(coding string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cw := &codedWriter{ResponseWriter: w, coding: coding}
		h.ServeHTTP(cw, r)
		if cw.to != nil {
			_ = cw.to.Close()
		}
	})
}

// Servers, and what stands before them, that compress what nobody asked them to: answers, streams, lists and errors are read.
//
// fault B5
func TestContentCodings(t *testing.T) {
	servers := map[string]ServerConfig{}
	for coding := range coders {
		name := strings.ReplaceAll(coding, " ", "-")
		servers[name+"-raw"] = HTTP{URL: serve(t, coded(coding, &rawHTTP{call: func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
			if _, args := m.tool(); strings.Contains(args, "fail") {
				http.Error(w, "the disk is full", http.StatusInsufficientStorage)
				return
			}
			answerText(w, m.ID, "plain")
		}})).URL}
		servers[name+"-lib"] = HTTP{URL: serve(t, coded(coding, libraryHTTP(t, nil))).URL}
		lib := libraryServer()
		servers[name+"-sse"] = SSE{URL: serve(t, coded(coding, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return lib }, nil))).URL}
	}
	h := newHost(t, servers)
	connected(t, h)
	for name := range servers {
		if strings.HasSuffix(name, "-raw") {
			if got := text(t, h, "mcp__"+name+"__echo", `{}`); got != "plain" {
				t.Errorf("%s: %q", name, got)
			}
			if _, err := h.Call(soon(t), "mcp__"+name+"__echo", []byte(`{"x":"fail"}`), nil); err == nil || !strings.Contains(err.Error(), "HTTP 507 Insufficient Storage: the disk is full") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := text(t, h, "mcp__"+name+"__big", `{"bytes":3000000}`); len(got) != 3_000_000 {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		checkFeatures(t, h, name)
	}
}

// A coding that is not known is named; so is one that is not what the header says, and one that hides a bomb is bounded.
//
// fault B5
func TestContentCodingsThatCannotBe(t *testing.T) {
	reply := func(coding string, status int, body []byte) HTTP {
		return HTTP{Common: Common{MaxMessageBytes: 1 << 20}, URL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Values("Accept-Encoding"); len(got) != 1 || got[0] != "identity" {
				t.Errorf("Accept-Encoding is %q", got)
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", coding)
			w.WriteHeader(status)
			_, _ = w.Write(body)
		})).URL}
	}
	bomb := new(bytes.Buffer)
	zw := gzip.NewWriter(bomb)
	_, _ = zw.Write(bytes.Repeat([]byte(" "), 100<<20)) // in memory
	_ = zw.Close()
	h := newHost(t, map[string]ServerConfig{
		"br":      reply("br", 200, []byte("\x8b\x02\x80")),
		"refused": reply("zstd", 403, []byte("\x28\xb5")),
		"liar":    reply("gzip", 200, []byte("not compressed")),
		"bomb":    reply("gzip", 200, bomb.Bytes()),
		"nested":  reply("gzip, gzip, gzip, gzip", 200, []byte("x")),
	})
	ready(t, h)
	for name, want := range map[string]string{
		"br": `the response has the content coding "br"`, "refused": `HTTP 403 Forbidden: (the response has the content coding "zstd"`,
		"liar": "cannot be decoded as its Content-Encoding says: gzip: invalid header", "bomb": "message is above the size limit", "nested": "more than 3 content codings",
	} {
		if s := status(t, h, name); s.Status == StatusConnected || !strings.Contains(s.Error, want) {
			t.Errorf("%s is %s: %s, want %q", name, s.Status, s.Error, want)
		}
	}
}
