package claudecode

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

func TestZZ(t *testing.T) {
	m := modeltest.New(t, modeltest.ToolUse("mcp__mine__echo", map[string]string{"text": "hello"}), modeltest.Text("done"), modeltest.Text("done again"))
	e, env := realWith(t, m, &Options{Title: "My title"})
	client, err := agent.Open(t.Context(), e, &agent.Options{
		SessionID: someID, Dir: t.TempDir(),
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))}, AllowedTools: []string{"mcp__mine"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Send(t.Context(), "hi")
	response(t, client)
	c, _ := ControlOf(client)
	if err := c.Rename(t.Context(), "Renamed"); err != nil {
		t.Fatal(err)
	}
	_ = client.Send(t.Context(), "again")
	response(t, client)
	client.Close()
	filepath.WalkDir(env["CLAUDE_CONFIG_DIR"], func(p string, d fs.DirEntry, err error) error {
		if d.IsDir() {
			return nil
		}
		b, _ := os.ReadFile(p)
		if len(b) > 9000 {
			b = b[:9000]
		}
		t.Logf("%s\n%s", p, b)
		return nil
	})
}
