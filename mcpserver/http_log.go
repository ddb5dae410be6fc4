package mcpserver

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Refusals are recorded at most refusalRecords times in each refusalWindow.
const (
	refusalRecords = 100
	refusalWindow  = time.Minute
)

// A refusalLog records refused requests and the number of those left out.
type refusalLog struct {
	log *slog.Logger

	mu      sync.Mutex // guards the rest
	began   time.Time  // of the window
	records int        // in the window
	left    int        // requests without a record since the last one
}

// refused records one request, without its credentials.
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
	l.log.WarnContext(req.Context(), "request refused", attrs...)
}

// flush records how many requests have no record.
func (l *refusalLog) flush() {
	l.mu.Lock()
	left := l.left
	l.left = 0
	l.mu.Unlock()
	if left > 0 {
		l.log.Warn("more requests refused", "unrecorded", left)
	}
}

// clipped returns the beginning of a text of the client.
func clipped(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// reasonOf returns the text of a refusal without the credentials in the request's
// Authorization header: a verifier may repeat the token, and the text may end in the
// middle of it.
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

// A refusalWriter keeps the status and the beginning of the body of a refusal.
type refusalWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
	reason []byte
}

// maxReason is the number of bytes of the body in a record.
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

// Unwrap is for [http.ResponseController].
func (w *refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
