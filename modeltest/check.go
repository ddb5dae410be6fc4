package modeltest

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
)

// request checks a whole request, in the order in which the API does it: who
// sends it, how large it is, whether it is JSON, then field by field, then the
// parts against each other. The first thing that is wrong stays in d.err.
func (d *decoder) request() {
	if d.err = checkHeader(d.r.Header, true); d.err != nil {
		return
	}
	body := d.r.Body
	if len(body) > maxBody {
		d.err = &problem{http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size"}
		return
	}
	if bad := checkJSON(body); bad != nil {
		line := bytes.Count(body[:bad.at], []byte("\n")) + 1
		column := bad.at - bytes.LastIndexByte(body[:bad.at], '\n')
		d.err = invalid("The request body is not valid JSON: %s: line %d column %d (char %d)", bad.msg, line, column, bad.at)
		return
	}
	d.body(bytes.TrimSpace(body))
	d.toolRules()
	d.conversation()
	d.thinkingBlocks()
	d.imageRules()
	d.cacheRules()
	d.r.marks = len(d.marks)
}

// checkHeader checks who sends a request and how.
func checkHeader(h http.Header, body bool) *problem {
	key, auth := h.Get("X-Api-Key"), h.Get("Authorization")
	token, bearer := strings.CutPrefix(auth, "Bearer ")
	switch {
	case key == "" && auth == "":
		return &problem{http.StatusUnauthorized, "authentication_error", "x-api-key header is required"}
	case key == "" && (!bearer || strings.TrimSpace(token) == ""):
		return &problem{http.StatusUnauthorized, "authentication_error", "invalid bearer token"}
	}
	switch v := h.Get("Anthropic-Version"); v {
	case "":
		return invalid("anthropic-version: header is required")
	case "2026-10-21", "2023-06-01", "2023-01-01":
	default:
		return invalid("anthropic-version: %q is not a valid version", v)
	}
	if media, _, err := mime.ParseMediaType(h.Get("Content-Type")); body && (err != nil || media != "application/json") {
		return invalid("content-type: must be application/json, got %q", h.Get("Content-Type"))
	}
	return nil
}

// maxMarks is how many cache_control blocks a request may have.
const maxMarks = 4

// cacheRules checks the cache_control blocks against each other.
func (d *decoder) cacheRules() {
	if len(d.marks) > maxMarks {
		d.err = firstOf(d.err, invalid("A maximum of %d blocks with cache_control may be provided. Found %d.", maxMarks, len(d.marks)))
	}
	for i, m := range d.marks {
		if i > 0 && m.hour && !d.marks[i-1].hour {
			d.failAt(m.at+".ttl", "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "+
				"Note that blocks are processed in the following order: `tools`, `system`, `messages`.")
		}
	}
}

func firstOf(a, b *problem) *problem {
	if a != nil {
		return a
	}
	return b
}
