package mcpserver

import (
	"fmt"
	"maps"
	"net/http"
)

// A quota counts what is in use by all users and by each.
type quota struct {
	all   int
	users map[string]int
}

func (q *quota) add(user string, n int) {
	q.all += n
	if user == "" {
		return
	}
	if q.users == nil {
		q.users = make(map[string]int)
	}
	if q.users[user] += n; q.users[user] == 0 {
		delete(q.users, user)
	}
}

// A fullError reports a limit that is reached.
type fullError struct {
	status int
	text   string
}

func (e *fullError) answer(w http.ResponseWriter, after string) {
	w.Header().Set("Retry-After", after)
	http.Error(w, e.text, e.status)
}

// checkBounds returns an error if a limit is exceeded. Negative limits mean none.
func checkBounds(what string, all, most, users, userMost int) *fullError {
	if most >= 0 && all > most {
		return &fullError{http.StatusServiceUnavailable, fmt.Sprintf("the limit of %d %s is reached", most, what)}
	}
	if userMost >= 0 && users > userMost {
		return &fullError{http.StatusTooManyRequests, fmt.Sprintf("the limit of %d %s for each user is reached", userMost, what)}
	}
	return nil
}

// userBound returns the limit for each user: bound, or its default for the limit all.
func userBound(bound, all int) int {
	const least = 10
	switch {
	case bound != 0:
		return bound
	case all < 0:
		return -1
	}
	return max(all/10, least)
}

// userBounds returns the limits for a user. Unknown users have none.
func (h *HTTPHandler) userBounds(user string) (sessions, requests int) {
	if user == "" {
		return -1, -1
	}
	return h.opts.Auth.MaxSessions, h.opts.Auth.MaxRequests
}

// enter counts n requests until leave, unless there are too many.
func (h *HTTPHandler) enter(user string, n int) *fullError {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, most := h.userBounds(user)
	if full := checkBounds("requests at a time", h.serving.all+n, h.opts.MaxRequests, h.serving.users[user]+n, most); full != nil {
		return full
	}
	h.serving.add(user, n)
	return nil
}

func (h *HTTPHandler) leave(user string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serving.add(user, -n)
}

// Sessions returns how many sessions are open (protocol up to 2025-11-25).
func (h *HTTPHandler) Sessions() int { return len(h.sessionIDs()) }

func (h *HTTPHandler) sessionIDs() map[string]bool {
	open := make(map[string]bool)
	for ss := range h.adapter.lib.Sessions() {
		if id := ss.ID(); id != "" {
			open[id] = true
		}
	}
	return open
}

// reserve counts one session until unreserve, unless there are too many. The library
// counts a session only while its request is served.
func (h *HTTPHandler) reserve(user string) *fullError {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := h.sessionIDs()
	maps.DeleteFunc(h.owners, func(id, _ string) bool { return !open[id] })
	users := h.opening.users[user]
	for _, owner := range h.owners {
		if owner == user {
			users++
		}
	}
	most, _ := h.userBounds(user)
	if full := checkBounds("sessions", len(open)+h.opening.all+1, h.opts.MaxSessions, users+1, most); full != nil {
		return full
	}
	h.opening.add(user, 1)
	return nil
}

// unreserve ends a reservation. The id is that of the session, if one was opened.
func (h *HTTPHandler) unreserve(user, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opening.add(user, -1)
	if user != "" && id != "" {
		h.owners[id] = user
	}
}
