package mcphost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// D85: each cause of a failure on the network has its own advice, in the error's field and in the status.
func TestAdviceForEachCause(t *testing.T) {
	wants := map[string]struct {
		err  error
		want string
	}{
		"refused": {fmt.Errorf("dialing: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), "start the server"},
		"dns":     {fmt.Errorf("dialing: %w", &net.DNSError{Err: "no such host", Name: "nowhere.test", IsNotFound: true}), "mend the host's name"},
		"broken":  {&HTTPError{Status: 502}, "look at the server's own log"},
		"absent":  {&HTTPError{Status: 404}, "check the URL"},
		"slow":    {nil, "see whether it answers at all"},
	}
	servers := map[string]ServerConfig{}
	for name, w := range wants {
		p := opensAfter(0)
		p.open = func(ctx context.Context) error {
			if w.err == nil {
				<-ctx.Done()
				return ctx.Err()
			}
			return w.err
		}
		servers[name] = InProcessServer{Provider: p, Common: Common{ConnectTimeout: 100 * time.Millisecond}}
	}
	h := newHost(t, servers)
	ready(t, h)
	seen := map[string]string{}
	for name, w := range wants {
		s := status(t, h, name)
		var ce *ConnectError
		if !errors.As(s.Err, &ce) || !strings.Contains(ce.Hint, w.want) || !strings.HasSuffix(s.Error, ce.Hint) {
			t.Errorf("%s: %s", name, s.Error)
			continue
		}
		if other, taken := seen[ce.Hint]; taken {
			t.Errorf("%s and %s have one advice", name, other)
		}
		seen[ce.Hint] = name
	}
}
