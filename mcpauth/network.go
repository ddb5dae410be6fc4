package mcpauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrInsecureURL reports a URL that is neither https nor http on this machine: a token sent there
// could be read on the way.
var ErrInsecureURL = errors.New("neither https nor on this machine")

const (
	// requestTimeout limits a request and its redirects, unless the caller's client has a timeout.
	requestTimeout = 30 * time.Second
	maxRedirects   = 5
	// bodyLimit limits a response's body after decompression, in bytes.
	bodyLimit = 1 << 20
)

// A network makes an authenticator's requests. The server chooses their URLs, so each is checked
// against where the server itself is.
type network struct {
	// probe requests the server itself and get metadata; both follow redirects within one origin. post
	// sends secrets and follows none.
	probe, get, post *http.Client
	reach            *reach
}

// newNetwork copies the caller's client, nil for the default. The URLs in trusted are the caller's.
func newNetwork(caller *http.Client, trusted ...string) *network {
	r := &reach{lookup: lookup}
	for _, address := range trusted {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			r.hosts = append(r.hosts, hostname(u))
		}
	}
	var base http.Client
	if caller != nil {
		base = *caller
	}
	if base.Timeout == 0 {
		base.Timeout = requestTimeout
	}
	base.Transport = newGuard(base.Transport, r)
	client := func(elsewhere func(*url.URL) error) *http.Client {
		c := base
		c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
			switch {
			case origin(req.URL) != origin(via[0].URL):
				return elsewhere(req.URL)
			case len(via) > maxRedirects:
				return fmt.Errorf("it redirects more than %d times", maxRedirects)
			case caller != nil && caller.CheckRedirect != nil:
				return caller.CheckRedirect(req, via)
			}
			return nil
		}
		return &c
	}
	n := &network{
		probe: client(func(*url.URL) error { return http.ErrUseLastResponse }),
		get: client(func(to *url.URL) error {
			return fmt.Errorf("it redirects to %s, and metadata is read from its own origin only", MaskURL(to.String()))
		}),
		post:  &base,
		reach: r,
	}
	n.post.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return n
}

// getJSON reports false for a 4xx and for a body that is no JSON object: many servers answer every
// path with a web page.
func (n *network) getJSON(ctx context.Context, address string, to any) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, fmt.Errorf("reading %s: not an address", MaskURL(address))
	}
	req.Header.Set("Accept", "application/json")
	resp, err := n.get.Do(req)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", MaskURL(address), urlCause(err))
	}
	body, err := readBody(resp)
	switch {
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", MaskURL(address), err)
	case resp.StatusCode >= 500:
		return false, fmt.Errorf("reading %s: HTTP %d", MaskURL(address), resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return false, nil
	}
	trimmed := strings.TrimSpace(string(body))
	if !strings.HasPrefix(trimmed, "{") || trimmed == "{}" {
		return false, nil
	}
	if err := json.Unmarshal(body, to); err != nil {
		return false, fmt.Errorf("reading %s: %w", MaskURL(address), err)
	}
	return true, nil
}

// readBody reads and closes a body of at most bodyLimit bytes.
func readBody(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	// net/http decodes gzip, which it requests, and removes the header.
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, fmt.Errorf("it is encoded with %q, which was not requested", clipped(coding, 40))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit+1))
	if err == nil && len(body) > bodyLimit {
		return nil, fmt.Errorf("more than %d bytes", bodyLimit)
	}
	return body, err
}

// A guard is a RoundTripper that refuses URLs out of reach, and for connections that it makes itself
// IP addresses out of reach.
type guard struct {
	reach *reach
	// direct connects to the URL's host, proxied to the proxy.
	direct, proxied http.RoundTripper
	proxy           func(*http.Request) (*url.URL, error)
}

func newGuard(base http.RoundTripper, r *reach) *guard {
	if base == nil {
		base = http.DefaultTransport
	}
	t, ok := base.(*http.Transport)
	if !ok {
		return &guard{reach: r, direct: base}
	}
	// Each request has a connection of its own, so that an authenticator needs no closing and no
	// connection outlives its check.
	proxied := t.Clone()
	proxied.DisableKeepAlives = true
	if proxied.MaxResponseHeaderBytes == 0 {
		proxied.MaxResponseHeaderBytes = bodyLimit
	}
	direct := proxied.Clone()
	direct.Proxy = nil
	//nolint:staticcheck // the deprecated fields are in use where they are set
	switch {
	case t.DialTLSContext != nil || t.DialTLS != nil || t.Dial != nil:
	case t.DialContext == nil, t == http.DefaultTransport && isDialer(t.DialContext):
		direct.DialContext = r.dialer()
	case isDialer(t.DialContext):
		direct.DialContext = r.checked(t.DialContext)
	}
	return &guard{reach: r, direct: direct, proxied: proxied, proxy: proxied.Proxy}
}

// isDialer reports whether dial is the method of a [net.Dialer], as in [http.DefaultTransport] and
// its copies. With any other function only the caller knows what an address means.
func isDialer(dial func(context.Context, string, string) (net.Conn, error)) bool {
	return reflect.ValueOf(dial).Pointer() == reflect.ValueOf(new(net.Dialer).DialContext).Pointer()
}

// RoundTrip is safe for concurrent use, as every RoundTripper must be.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.reach.check(req.Context(), req.URL); err != nil {
		closeBody(req)
		return nil, err
	}
	if g.proxy != nil {
		proxy, err := g.proxy(req)
		if err != nil {
			closeBody(req)
			return nil, err
		}
		if proxy != nil {
			return g.proxied.RoundTrip(req)
		}
	}
	return g.direct.RoundTrip(req)
}

// A zone is a part of the address space. A server may name addresses in its own zone and in those
// before it.
type zone int

const (
	zonePublic  zone = iota
	zonePrivate      // private, unique local, carrier-grade NAT
	zoneLoopback
	// zoneReserved is for nobody but a server at the very address: link-local, the metadata
	// services of clouds, and what is no address of one machine.
	zoneReserved
)

var (
	privateNets = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")
	// The metadata services of Alibaba, Azure, Oracle and AWS; that of the others is link-local.
	reservedNets = prefixes("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.0/24", "fd00:ec2::254/128",
		"224.0.0.0/4", "ff00::/8", "255.255.255.255/32")
	loopbackNets = prefixes("127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128")
	// embeddedNets hold an IPv4 address at the given byte: NAT64 and 6to4.
	embeddedNets = []struct {
		net netip.Prefix
		at  int
	}{
		{netip.MustParsePrefix("64:ff9b::/96"), 12},
		{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
		{netip.MustParsePrefix("2002::/16"), 2},
		{netip.MustParsePrefix("::/96"), 12},
	}
	// reservedNames are those of the metadata services of clouds.
	reservedNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)

func prefixes(list ...string) []netip.Prefix {
	nets := make([]netip.Prefix, len(list))
	for i, s := range list {
		nets[i] = netip.MustParsePrefix(s)
	}
	return nets
}

func zoneOf(ip netip.Addr) zone {
	ip = ip.Unmap().WithZone("")
	in := func(nets []netip.Prefix) bool {
		return slices.ContainsFunc(nets, func(p netip.Prefix) bool { return p.Contains(ip) })
	}
	switch {
	case in(reservedNets):
		return zoneReserved
	case in(loopbackNets):
		return zoneLoopback
	case in(privateNets):
		return zonePrivate
	}
	for _, e := range embeddedNets {
		if e.net.Contains(ip) {
			b := ip.As16()
			return zoneOf(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
		}
	}
	return zonePublic
}

// A reach allows public addresses, and others only as far as the server itself is there, so that a
// server on the internet cannot make its clients request what only they can reach.
type reach struct {
	hosts  []string // the hosts that the caller named, as hostname returns them
	lookup func(ctx context.Context, host string) []netip.Addr
}

// hostname returns the host of u in lower case and without a final dot.
func hostname(u *url.URL) string {
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// local reports whether the caller named this machine.
func (r *reach) local() bool { return slices.ContainsFunc(r.hosts, isLoopback) }

// check refuses a URL that its text shows to be unsafe: without TLS, except on this machine, or out of
// reach.
func (r *reach) check(ctx context.Context, u *url.URL) error {
	if err := checkSecure(u); err != nil {
		return err
	}
	host := hostname(u)
	if slices.Contains(r.hosts, host) {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case slices.Contains(reservedNames, host):
		return r.refusal(u.Host)
	case err == nil:
		return r.allow(ctx, ip)
	case isLoopback(host) && !r.local():
		return r.refusal(u.Host)
	}
	return nil
}

func (r *reach) refusal(what string) error {
	return fmt.Errorf("%s is not a public address, and the server is not there itself", clipped(what, 100))
}

// allow refuses an IP address out of reach. It looks up names only for addresses that are not public.
func (r *reach) allow(ctx context.Context, ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	z := zoneOf(ip)
	if z == zonePublic {
		return nil
	}
	for _, host := range r.hosts {
		if isLoopback(host) && z <= zoneLoopback {
			return nil
		}
		addrs := r.addresses(ctx, host)
		// A name with a public address too can be anybody's.
		public := slices.ContainsFunc(addrs, func(a netip.Addr) bool { return zoneOf(a) == zonePublic })
		if len(addrs) > 0 && !public && (z == zonePrivate || slices.Contains(addrs, ip)) {
			return nil
		}
	}
	return r.refusal(ip.String())
}

// addresses returns the IP addresses of a host, none if they cannot be found.
func (r *reach) addresses(ctx context.Context, host string) []netip.Addr {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap().WithZone("")}
	}
	found := r.lookup(ctx, host)
	for i, a := range found {
		found[i] = a.Unmap().WithZone("")
	}
	return found
}

func lookup(ctx context.Context, host string) []netip.Addr {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // then only public addresses are in reach
	}
	return addrs
}

// dialer returns a dial function that checks each IP address before it connects.
func (r *reach) dialer() func(context.Context, string, string) (net.Conn, error) {
	plain := net.Dialer{Timeout: requestTimeout}
	checking := plain
	checking.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connecting to %s: no IP address", address)
		}
		return r.allow(ctx, ap.Addr())
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if r.named(address) {
			return plain.DialContext(ctx, network, address)
		}
		return checking.DialContext(ctx, network, address)
	}
}

// checked returns a dial function that checks where dial has connected to.
func (r *reach) checked(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil || r.named(address) {
			return conn, err
		}
		if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			if err := r.allow(ctx, tcp.AddrPort().Addr()); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
		}
		return conn, nil
	}
}

// named reports whether the caller named the host of a HOST:PORT.
func (r *reach) named(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && slices.Contains(r.hosts, strings.ToLower(strings.TrimSuffix(host, ".")))
}

// checkSecure demands https, or http on this machine.
func checkSecure(u *url.URL) error {
	switch {
	case u.Scheme == "https" && u.Host != "":
		return nil
	case u.Scheme == "http" && isLoopback(hostname(u)):
		return nil
	}
	return fmt.Errorf("%s is %w", MaskURL(u.String()), ErrInsecureURL)
}

// isLoopback reports whether a host, as hostname returns it, is this machine.
func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// urlCause removes the URL from an error of net/http, since its query may have a secret.
func urlCause(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}
