package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// A client that does not read its standing stream loses it, and keeps nobody else
// from hearing of changes.
//
// fault G11
func TestHTTPClientsThatReadNothing(t *testing.T) {
	s := served(t)
	uri := "wide:" + strings.Repeat("x", 2000)
	if err := s.AddResource(&mcp.Resource{URI: uri, Name: "wide"}, func(context.Context) (*mcp.ReadResourceResult, error) {
		return mcpserver.TextResource(uri, "", "x"), nil
	}); err != nil {
		t.Fatal(err)
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			var log records
			h := mcpserver.NewHTTPHandler(s, &mcpserver.HTTPOptions{Logger: log.logger()})
			srv := httptest.NewUnstartedServer(h)
			srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
				if err := c.(*net.TCPConn).SetWriteBuffer(4096); err != nil {
					t.Error(err)
				}
				return ctx
			}
			srv.Start()
			defer func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := h.Shutdown(ctx); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				srv.Close()
			}()
			// stream asks for a stream of changes on a connection of its own.
			stream := func() net.Conn {
				addr, err := url.Parse(srv.URL)
				if err != nil {
					t.Fatal(err)
				}
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr.Host)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				if version == "2026-07-28" {
					body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + uri + `"]},` + meta + `}}`
					fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nMcp-Protocol-Version: %s\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", addr.Host, version, len(body), body)
					return c
				}
				id := open(t, srv.URL)
				if r := post(t, srv.URL, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`, "Mcp-Session-Id", id); r.status != http.StatusOK || !strings.Contains(r.body, `"result"`) {
					t.Fatalf("subscribe: %d %s", r.status, r.body)
				}
				fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nMcp-Session-Id: %s\r\n\r\n", addr.Host, id)
				return c
			}
			deaf := stream()
			if err := deaf.(*net.TCPConn).SetReadBuffer(4096); err != nil {
				t.Fatal(err)
			}
			heard := bufio.NewReader(stream())
			const updates = 1500 // of 2,000 bytes
			for i := range updates {
				s.NotifyResourceUpdated(uri)
				for {
					line, err := heard.ReadString('\n')
					if err != nil {
						t.Fatalf("a client that reads, after %d updates: %v", i, err)
					}
					if strings.Contains(line, "notifications/resources/updated") {
						break
					}
					if i == 0 && strings.TrimSpace(line) == "" {
						s.NotifyResourceUpdated(uri) // the first may have come before the stream
					}
				}
			}
			got, _ := io.Copy(io.Discard, deaf) // ends, in whatever way the connection does
			if got < 1<<12 || got > updates*2000/2 {
				t.Errorf("the client that did not read was sent %d bytes", got)
			}
			if _, text := log.take(t); !strings.Contains(text, "its client does not read") {
				t.Errorf("the log is %s", text)
			}
		})
	}
}
