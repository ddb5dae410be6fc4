package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost"
)

// settings is what the suite passes in MCP_CONFORMANCE_CONTEXT.
type settings struct {
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	PrivateKeyPEM string `json:"private_key_pem"`
	Algorithm     string `json:"signing_algorithm"`
	ToolCalls     []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

// TestMain runs the client if the suite started this process: the suite names a scenario.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := runClient(); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

const server = "server" // the one server's name

// runClient connects to the server whose address is the argument and does what the scenario asks for.
func runClient() error {
	if len(os.Args) != 2 {
		return errors.New("usage: client SERVER-URL, with MCP_CONFORMANCE_SCENARIO set")
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	var set settings
	if s := os.Getenv("MCP_CONFORMANCE_CONTEXT"); s != "" {
		if err := json.Unmarshal([]byte(s), &set); err != nil {
			return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()

	config := mcphost.HTTP{URL: os.Args[1]}
	if strings.HasPrefix(scenario, "auth/") {
		a, err := authenticator(os.Args[1], scenario, &set)
		if err != nil {
			return err
		}
		config.Auth = a
	}
	h, err := mcphost.New(&mcphost.Options{
		Servers: map[string]mcphost.ServerConfig{server: config},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Client:  &mcp.Implementation{Name: "tenon-conformance", Version: "1.0.0"},
		Elicit:  elicit(scenario),
	})
	if err != nil {
		return err
	}
	defer h.Close()
	h.Start(ctx)
	if err := h.Ready(ctx); err != nil {
		return err
	}
	if st := h.Status()[0]; st.Status != mcphost.StatusConnected {
		return fmt.Errorf("%s: %s", st.Status, st.Error)
	}
	return drive(ctx, h, scenario, &set)
}

// authenticator is a person who agrees at once, or a service of its own.
func authenticator(url, scenario string, set *settings) (*mcpauth.Authenticator, error) {
	o := &mcpauth.Options{
		Authorize:         agree,
		RedirectURL:       "http://localhost:3000/callback",
		ClientMetadataURL: "https://conformance-test.local/client-metadata.json",
	}
	switch {
	case strings.HasPrefix(scenario, "auth/client-credentials"):
		o.Grant = &mcpauth.ClientCredentialsGrant{
			ClientID: set.ClientID, ClientSecret: set.ClientSecret,
			PrivateKeyPEM: []byte(set.PrivateKeyPEM), Algorithm: set.Algorithm,
		}
	case set.ClientID != "":
		o.ClientID, o.ClientSecret = set.ClientID, set.ClientSecret
	}
	return mcpauth.New(url, o)
}

// agree follows the authorization address to its redirect, as the suite's
// server sends everybody there who asks.
func agree(ctx context.Context, req *mcpauth.AuthorizationRequest) (*mcpauth.AuthorizationResponse, error) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, req.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	return mcpauth.ParseRedirect(resp.Header.Get("Location"), req.State)
}

// elicit answers as the scenarios want it: nothing filled in, so that the
// schema's defaults have to be, or a plain confirmation.
func elicit(scenario string) func(context.Context, string, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	content := map[string]any{}
	switch scenario {
	case "elicitation-sep1034-client-defaults":
	case "sep-2322-client-request-state":
		content["confirmed"] = true
	default:
		return nil
	}
	return func(context.Context, string, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}
}

// drive does what the scenario is about. What the server answers is the
// suite's business: only calls that the scenario needs to work are errors.
func drive(ctx context.Context, h *mcphost.Host, scenario string, set *settings) error {
	call := func(tool, args string) error {
		res, err := h.CallServer(ctx, server, tool, json.RawMessage(args), nil)
		if err != nil {
			return fmt.Errorf("calling %s: %w", tool, err)
		}
		slog.Info("called", "tool", tool, "isError", res.IsError)
		return nil
	}
	attempt := func(tool, args string) {
		if err := call(tool, args); err != nil {
			slog.Info("refused", "error", err)
		}
	}
	switch scenario {
	case "tools_call":
		return call("add_numbers", `{"a":5,"b":3}`)
	case "elicitation-sep1034-client-defaults":
		return call("test_client_elicitation_defaults", `{}`)
	case "sse-retry":
		return call("test_reconnection", `{}`)
	case "json-schema-2020-12-preservation":
		return echoSchema(h, call)
	case "sep-2322-client-request-state":
		for _, t := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			attempt(t, `{}`)
		}
	case "http-standard-headers":
		oneOfEach(ctx, h, attempt)
	case "http-custom-headers":
		for _, c := range set.ToolCalls {
			attempt(c.Name, string(c.Arguments))
		}
	case "http-invalid-tool-headers":
		for _, t := range h.Tools() {
			attempt(t.Name, `{"region":"us-west1"}`)
		}
	default:
		if strings.HasPrefix(scenario, "auth/") {
			return call("test-tool", `{}`)
		}
	}
	return nil
}

// echoSchema sends a tool's input schema back, as the host keeps it.
func echoSchema(h *mcphost.Host, call func(tool, args string) error) error {
	for _, t := range h.Tools() {
		if t.Name == "json_schema_2020_12_tool" {
			args, err := json.Marshal(map[string]json.RawMessage{"schema": t.InputSchema})
			if err != nil {
				return err
			}
			return call("json_schema_echo", string(args))
		}
	}
	return errors.New("the server's tool json_schema_2020_12_tool is missing")
}

// oneOfEach uses a tool, a resource and a prompt.
func oneOfEach(ctx context.Context, h *mcphost.Host, attempt func(tool, args string)) {
	if tools := h.Tools(); len(tools) > 0 {
		attempt(tools[0].Name, `{}`)
	}
	if rs, err := h.Resources(ctx, server); err == nil && len(rs) > 0 {
		_, err := h.ReadResource(ctx, server, rs[0].URI)
		slog.Info("read a resource", "error", err)
	}
	if ps, err := h.Prompts(ctx, server); err == nil && len(ps) > 0 {
		_, err := h.GetPrompt(ctx, server, ps[0].Name, map[string]string{})
		slog.Info("got a prompt", "error", err)
	}
}
