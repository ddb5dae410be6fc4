package mcpserver

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The bound on records of requests that were turned away: a flood of them must
// not become a flood of the log.
const (
	refusalRecords = 100
	refusalWindow  = time.Minute
)

// A refusalLog records requests that were turned away, at most refusalRecords in
// each refusalWindow, and says how many it left out.
type refusalLog struct {
	log *slog.Logger

	mu      sync.Mutex // guards the rest
	began   time.Time  // of the window
	records int        // in the window
	left    int        // requests without a record since the last one
}

// refused records one request. Its credentials are never in the record.
func (l *refusalLog) refused(req *http.Request, status int, reason string) {
	l.mu.Lock()
	if now := time.Now(); now.Sub(l.began) >= refusalWindow {
		l.began, l.records = now, 0
	}
	if l.records == refusalRecords {
		l.left++
		l.mu.Unlock()
		return
	}
	l.records++
	left := l.left
	l.left = 0
	l.mu.Unlock()
	attrs := []any{"status", status, "reason", reasonOf(req, reason), "method", clipped(req.Method), "remote", req.RemoteAddr, "host", clipped(req.Host)}
	if left > 0 {
		attrs = append(attrs, "unrecorded", left)
	}
	l.log.WarnContext(req.Context(), "request turned away", attrs...)
}

// flush says how many requests have no record, if any.
func (l *refusalLog) flush() {
	l.mu.Lock()
	left := l.left
	l.left = 0
	l.mu.Unlock()
	if left > 0 {
		l.log.Warn("requests turned away without a record each", "unrecorded", left)
	}
}

// clipped is the beginning of a text that the client wrote.
func clipped(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// reasonOf is the beginning of an answer without what the request's Authorization
// header holds: the text may come from a verifier that repeats the token, and may
// have been cut in the middle of it.
func reasonOf(req *http.Request, text string) string {
	cut := len(text) == maxReason
	for _, value := range req.Header.Values("Authorization") {
		for _, secret := range strings.Fields(value) {
			if strings.EqualFold(secret, "bearer") {
				continue
			}
			text = strings.ReplaceAll(text, secret, "***")
			for n := min(len(secret), len(text)); cut && n > 0; n-- {
				if strings.HasSuffix(text, secret[:n]) {
					text = text[:len(text)-n] + "***"
					break
				}
			}
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, ""))
}

// A refusalWriter notes the status and the beginning of the body of an answer that
// turns a request away.
type refusalWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
	reason []byte
}

// maxReason is how much of the body goes into a record.
const maxReason = 300

func (w *refusalWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusalWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.status >= http.StatusBadRequest {
		w.reason = append(w.reason, p[:min(len(p), maxReason-len(w.reason))]...)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets [http.ResponseController] find what can flush.
func (w *refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
