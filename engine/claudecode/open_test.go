package claudecode

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// Trap 3.4.14: the CLI shakes hands while our own initialize still waits for its answer; who answers
// only afterwards waits for ever. A server in this process is connected when the CLI has been told of it, before there is any input. // D56
//
// fault F20
func TestServerIsConnectedBeforeAnyInput(t *testing.T) {
	e, o := fake("polite")
	p := &listedProvider{echo(t), make(chan struct{}, 10)}
	o.MCPServers = map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(p)}
	c, err := agent.Open(limited(t, "the handshakes"), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	await(t, p.listed, "the CLI to list the tools")
}

// listedProvider tells when its tools are listed.
type listedProvider struct {
	*mcpserver.Server
	listed chan struct{}
}

func (p *listedProvider) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	s, err := p.Server.OpenSession(ctx, o)
	return &listedSession{s, p.listed}, err
}

type listedSession struct {
	mcpserver.ServerSession
	listed chan struct{}
}

func (s *listedSession) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	s.listed <- struct{}{}
	return s.ServerSession.ListTools(ctx)
}
