package mcpauth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// names resolves from a table.
func names(table map[string][]string) func(context.Context, string) []netip.Addr {
	return func(_ context.Context, host string) []netip.Addr {
		var addrs []netip.Addr
		for _, a := range table[host] {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		return addrs
	}
}

// Where a server is known by name, its addresses say where it is: all of them must be private.
// fault H6
func TestReachOfANamedServer(t *testing.T) {
	lookup := names(map[string][]string{
		"public.example": {"203.0.113.5"}, "corp.example": {"10.0.0.1", "fd12::1"}, "dev.example": {"127.0.0.1"},
		"both.example": {"10.0.0.1", "203.0.113.5"}, "link.example": {"169.254.10.1"},
	})
	for _, tt := range []struct {
		server, address string
		ok              bool
	}{
		{"public.example", "203.0.113.6", true},
		{"public.example", "10.0.0.2", false},
		{"corp.example", "203.0.113.6", true},
		{"corp.example", "10.0.0.2", true},
		{"corp.example", "::ffff:192.168.0.1", true},
		{"corp.example", "127.0.0.1", false},
		{"corp.example", "169.254.169.254", false},
		{"corp.example", "100.100.100.200", false},
		{"dev.example", "127.0.0.1", true},
		{"dev.example", "127.0.0.2", false},
		{"both.example", "10.0.0.1", false}, // anybody can add an address to a name
		{"link.example", "169.254.10.1", true},
		{"link.example", "169.254.169.254", false},
		{"unknown.example", "10.0.0.1", false},
		{"localhost", "127.0.0.1", true},
		{"localhost", "::1", true},
		{"localhost", "fe80::1", false},
	} {
		r := &reach{hosts: []string{tt.server}, lookup: lookup}
		if err := r.allow(t.Context(), netip.MustParseAddr(tt.address)); (err == nil) != tt.ok {
			t.Errorf("%s from %s: got %v, want it allowed: %v", tt.address, tt.server, err, tt.ok)
		}
	}
}

// A name that turns out to be in a private network is refused when the connection is made, before anything is sent; what a
// caller's own function dials, or a proxy, is up to those.
// fault H6
func TestNamesAreCheckedWhenDialing(t *testing.T) {
	var requests, connects atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			connects.Add(1)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		requests.Add(1)
	}))
	defer target.Close()
	u, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	toTarget := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, u.Host)
	}
	for _, tt := range []struct {
		name      string
		transport http.RoundTripper
		connected bool // to the target, or through it
	}{
		{"the default", nil, false},
		{"a copy of the default", http.DefaultTransport.(*http.Transport).Clone(), false},
		{"the zero one", &http.Transport{}, false},
		{"a dialer of the caller's", &http.Transport{DialContext: (&net.Dialer{}).DialContext}, false},
		{"a function of the caller's", &http.Transport{DialContext: toTarget}, true},
		{"a proxy", &http.Transport{Proxy: http.ProxyURL(u)}, true},
	} {
		n := newNetwork(&http.Client{Transport: tt.transport}, "https://203.0.113.5/mcp")
		g := n.get.Transport.(*guard)
		// Behind the check of the text, as a name that resolves to this machine.
		before := connects.Load() + requests.Load()
		err := dialThrough(t, g, "localhost:"+u.Port())
		refused := err != nil && strings.Contains(err.Error(), "is not a public address, and the server is not there itself")
		if refused == tt.connected {
			t.Errorf("%s: got %v, want a connection: %v", tt.name, err, tt.connected)
		}
		if got := connects.Load() + requests.Load(); got != before && !tt.connected {
			t.Errorf("%s: something was sent", tt.name)
		}
	}
	if connects.Load() != 1 {
		t.Errorf("the proxy was asked %d times, want once", connects.Load())
	}
}

// dialThrough sends a request past the check of the address's text. The answer is
// that of a server without TLS, or of a proxy that refuses: both were reached.
func dialThrough(t *testing.T, g *guard, address string) error {
	t.Helper()
	open := *g
	open.reach = &reach{hosts: []string{"localhost"}, lookup: lookup} // the text is in order
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := open.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
		err = fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	return err
}

// The answer to a login must not go to whoever has the other half of the port.
// fault H9
func TestCallbackNeedsBothFamilies(t *testing.T) {
	taken := errors.New("address already in use")
	type step struct {
		host string
		port int
	}
	var steps []step
	open := 0
	listen := func(v6 func(port int) error) func(host string, port int) (net.Listener, error) {
		steps, open = nil, 0
		next := 7000
		return func(host string, port int) (net.Listener, error) {
			steps = append(steps, step{host, port})
			if host == "::1" {
				if err := v6(port); err != nil {
					return nil, err
				}
			}
			if port == 0 {
				next++
				port = next
			}
			open++
			return &fakeListener{port: port, closed: func() { open-- }}, nil
		}
	}
	ports := func(ls []net.Listener) (ports []int) {
		for _, l := range ls {
			ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		}
		return ports
	}

	ls, err := listenLocal(0, listen(func(port int) error {
		if port == 7002 || port == 7003 {
			return taken
		}
		return nil
	}))
	if got := ports(ls); err != nil || len(got) != 2 || got[0] != 7004 || got[1] != 7004 || open != 2 {
		t.Errorf("a free port: got %v, %v, %d open; want 7004 twice", got, err, open)
	}
	ls, err = listenLocal(3118, listen(func(port int) error {
		if port == 3118 {
			return taken
		}
		return nil
	}))
	if ls != nil || !errors.Is(err, taken) || !strings.Contains(err.Error(), "end it, or use another port") || open != 0 {
		t.Errorf("a fixed port: got %v, %v, %d open", ports(ls), err, open)
	}
	ls, err = listenLocal(0, listen(func(port int) error {
		if port != 0 {
			return taken
		}
		return nil
	}))
	if ls != nil || !errors.Is(err, taken) || open != 0 || len(steps) != 1+2*portAttempts {
		t.Errorf("no port at all: got %v, %v, %d open after %d steps", ports(ls), err, open, len(steps))
	}
	ls, err = listenLocal(3118, listen(func(int) error { return errors.New("no IPv6") }))
	if got := ports(ls); err != nil || len(got) != 1 || got[0] != 3118 || open != 1 {
		t.Errorf("without IPv6: got %v, %v, %d open", got, err, open)
	}
}

type fakeListener struct {
	net.Listener
	port   int
	closed func()
}

func (l *fakeListener) Addr() net.Addr { return &net.TCPAddr{Port: l.port} }

func (l *fakeListener) Close() error { l.closed(); return nil }

// A store with an entry of nobody knows whom wraps ErrNotFound in an error of its own: there is nothing to keep.
// fault F17
func TestAbsentHeedsWrappedErrors(t *testing.T) {
	for err, want := range map[error]bool{
		ErrNotFound:                          true,
		fmt.Errorf("vault: %w", ErrNotFound): true,
		&StoreError{Op: "read", Err: &damagedError{err: fs.ErrInvalid}}: true,
		&StoreError{Op: "read", Err: fs.ErrPermission}:                  false,
		errors.New("mcpauth: no stored credentials"):                    false,
	} {
		if absent(err) != want {
			t.Errorf("%v is absent: %v, want %v", err, !want, want)
		}
	}
}

// Texts of others are shown in one line of whole characters.
func TestClip(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "longe…"},
		{"aaé", 3, "aa…"},
		{"aaé", 4, "aaé"},
		{"a😀", 4, "a…"},
		{"é😀b", 6, "é😀…"},
		{"two\r\n lines\t", 100, "two lines"},
		{"\xff\xfe", 100, "\uFFFD"},
	} {
		if got := clipped(tt.in, tt.limit); got != tt.want {
			t.Errorf("clipped(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

// A key that nobody holds takes no space, whether its waiters got it or left.
func TestLocksLeaveNothingBehind(t *testing.T) {
	var locks keyLocks
	entries := func() (n int) {
		locks.held.Range(func(any, any) bool { n++; return true })
		return n
	}
	unlock, err := locks.lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("gone")
	cancel(cause)
	if _, err := locks.lock(gone, "k"); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	if n := entries(); n != 1 {
		t.Errorf("%d keys while one is held", n)
	}
	unlock()
	if n := entries(); n != 0 {
		t.Errorf("%d keys when none is held", n)
	}
}

// Every character of a token is one, at the edges of the ranges as well.
func TestTokens(t *testing.T) {
	for _, name := range []string{"azAZ09", "!#$%&'*+-.^_`|~"} {
		if n := tokenLen(name + "=x"); n != len(name) {
			t.Errorf("%q: %d bytes are a token, want %d", name, n, len(name))
		}
	}
	for _, c := range []string{"/", ":", "@", "[", "{", "}", "(", "\"", ",", ";", " ", "\x00", "é", "="} {
		if n := tokenLen("a" + c); n != 1 {
			t.Errorf("a%s: %d bytes are a token, want 1", c, n)
		}
	}
}
