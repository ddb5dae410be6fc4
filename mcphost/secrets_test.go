package mcphost

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

func init() {
	// parrot repeats its secret wherever a host may pass it on.
	children["parrot"] = func() {
		key := os.Getenv("API_KEY")
		fmt.Println("starting with key", key)
		fmt.Println(strings.Repeat(".", noiseLine-4) + key) // the head of the line ends within it
		fmt.Fprintln(os.Stderr, "key is", key)
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			switch m.Method {
			case "tools/call":
				s.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"log of %s","data":{"key":%q}}}`, key, key)
				s.fail(m.ID, -32000, "no access with "+key)
				return true
			case "resources/list":
				s.reply(m.ID, `{"resources":["`+key+`"]}`)
				return true
			case "initialize":
				s.reply(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"parrot","version":"1"}}`)
				return true
			}
			return false
		})
	}
}

// parrotHTTP repeats the Authorization header in every way of refusing a call.
func parrotHTTP(t *testing.T) string {
	raw := &rawHTTP{before: func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
		switch auth := r.Header.Get("Authorization"); {
		case m.Method == "tools/list" && strings.HasSuffix(r.URL.Path, "/list"):
			answerError(w, m.ID, -32000, "no list for "+auth)
		case m.Method == "initialize" && strings.HasSuffix(r.URL.Path, "/type"):
			w.Header().Set("Content-Type", "text/"+strings.TrimPrefix(auth, "Bearer "))
			fmt.Fprint(w, "hello")
		case m.Method == "initialize" && strings.HasSuffix(r.URL.Path, "/redirect"):
			w.Header().Set("Location", "http://example.com/"+strings.TrimPrefix(auth, "Bearer "))
			w.WriteHeader(http.StatusTemporaryRedirect)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/event"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: %s\ndata: x\n\n", auth)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/elsewhere"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: http://example.com/%s\n\n", strings.TrimPrefix(auth, "Bearer "))
		default:
			return false
		}
		return true
	}}
	raw.call = func(w http.ResponseWriter, r *http.Request, m rawMsg) {
		auth := r.Header.Get("Authorization")
		token := strings.TrimPrefix(auth, "Bearer ")
		switch _, args := m.tool(); {
		case strings.Contains(args, "rpc"):
			answerError(w, m.ID, -32000, "no access with "+token)
		case strings.Contains(args, "body"):
			http.Error(w, "no access with "+auth, http.StatusTeapot)
		case strings.Contains(args, "cut"):
			http.Error(w, strings.Repeat(".", transport.BodyHead-4)+token, http.StatusTeapot)
		case strings.Contains(args, "noise"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, strings.Repeat(".", transport.BodyHead-4)+token)
		case strings.Contains(args, "401"):
			http.Error(w, "no access with "+auth, http.StatusUnauthorized)
		case strings.Contains(args, "stream"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: what is %s?\n\n", token)
		}
	}
	return serve(t, raw).URL
}

// Pain 9: no error, status or log holds a secret, whatever the server repeats of it: of the
// configuration, of computed headers or of a stored login.
func TestServersThatRepeatSecrets(t *testing.T) {
	const secret = "sesame-0123456789-sesame"
	var log syncBuffer
	store := mcpauth.NewMemoryStore()
	url := parrotHTTP(t)
	auth, err := mcpauth.New(url, &mcpauth.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	keep := func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
		return &mcpauth.Credentials{ServerURL: url, AccessToken: secret}, nil
	}
	if err := store.Update(t.Context(), mcpauth.Key(url), keep); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, map[string]ServerConfig{
		"stdio":  child("parrot", "API_KEY="+secret),
		"static": HTTP{URL: url, Headers: map[string]string{"Authorization": "Bearer " + secret}},
		"computed": HTTP{URL: url, HeadersFunc: func(context.Context) (map[string]string, error) {
			return map[string]string{"Authorization": "Bearer " + secret}, nil
		}},
		"login": HTTP{URL: url, Auth: auth},
	}, func(o *Options) {
		o.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	connected(t, h)
	check := func(what, text string) {
		t.Helper()
		if strings.Contains(text, "sesame") {
			t.Errorf("%s shows the secret: %s", what, text)
		}
	}
	if _, err := h.Resources(soon(t), "stdio"); err != nil {
		t.Error(err)
	}
	for _, s := range h.Status() {
		for _, how := range []string{"rpc", "body", "cut", "noise", "stream", "401"} {
			args, err := json.Marshal(map[string]string{"how": how})
			if err != nil {
				t.Fatal(err)
			}
			_, err = h.CallServer(soon(t), s.Name, "echo", args, nil)
			if err == nil {
				t.Fatalf("%s, %s: no error", s.Name, how)
			}
			check(s.Name+" "+how, err.Error())
			if how == "rpc" && !strings.Contains(err.Error(), "no access with ***") {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
	for _, s := range h.Status() {
		check("status of "+s.Name, fmt.Sprintf("%+v", s))
		if s.Name == "stdio" && (s.Noise < 2 || !strings.Contains(s.NoiseHead[0], "key ***")) {
			t.Errorf("noise %d %q", s.Noise, s.NoiseHead)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	check("the log", log.String())
	if !strings.Contains(log.String(), "log of ***") {
		t.Errorf("the log has nothing of the server's: %s", log.String())
	}
}

// Nor does what a server says while it is connected: the error of a list, the type of an answer, an address or an event that
// are named in an error.
//
// fault C6
func TestServersThatRepeatSecretsWhenConnected(t *testing.T) {
	const secret = "sesame-0123456789-sesame"
	var log syncBuffer
	url := parrotHTTP(t)
	headers := map[string]string{"Authorization": "Bearer " + secret}
	computed := func(context.Context) (map[string]string, error) { return headers, nil }
	h := newHost(t, map[string]ServerConfig{
		"list":      HTTP{URL: url + "/list", HeadersFunc: computed},
		"type":      HTTP{URL: url + "/type", HeadersFunc: computed},
		"redirect":  HTTP{URL: url + "/redirect", HeadersFunc: computed},
		"event":     SSE{URL: url + "/event", HeadersFunc: computed},
		"elsewhere": SSE{URL: url + "/elsewhere", Headers: headers},
	}, func(o *Options) {
		o.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	ready(t, h)
	for name, want := range map[string]string{
		"list": "no list for ***", "type": `"text/***"`, "redirect": "http://example.com/***", "event": `event "***"`, "elsewhere": "http://example.com/***",
	} {
		if s := status(t, h, name); !strings.Contains(s.Error, want) || strings.Contains(fmt.Sprintf("%+v", s), "sesame") {
			t.Errorf("%s: %+v, want %q", name, s, want)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "sesame") {
		t.Errorf("the log shows the secret: %s", log.String())
	}
}
