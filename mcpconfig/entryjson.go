package mcpconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tailscale/hujson"
)

// EntryJSON returns an entry in the form of a document, for [SetServer]. References in strings stay
// references.
func EntryJSON(e Entry) (json.RawMessage, error) {
	type policyJSON struct {
		Name   string `json:"name"`
		Policy string `json:"permission_policy"`
	}
	type oauthJSON struct {
		ClientID     string   `json:"clientId,omitempty"`
		ClientSecret string   `json:"clientSecret,omitempty"`
		CallbackPort int      `json:"callbackPort,omitempty"`
		MetadataURL  string   `json:"authServerMetadataUrl,omitempty"`
		Scopes       []string `json:"scopes,omitempty"`
	}
	out := struct {
		Type           Kind              `json:"type,omitempty"`
		Command        string            `json:"command,omitempty"`
		Args           []string          `json:"args,omitempty"`
		Env            map[string]string `json:"env,omitempty"`
		Dir            string            `json:"cwd,omitempty"`
		URL            string            `json:"url,omitempty"`
		Headers        map[string]string `json:"headers,omitempty"`
		HeadersHelper  string            `json:"headersHelper,omitempty"`
		OAuth          *oauthJSON        `json:"oauth,omitempty"`
		Timeout        int64             `json:"timeout,omitempty"`
		ConnectTimeout int64             `json:"connectTimeout,omitempty"`
		MaxMessage     int               `json:"maxMessageBytes,omitempty"`
		AlwaysLoad     bool              `json:"alwaysLoad,omitempty"`
		Required       bool              `json:"required,omitempty"`
		Disabled       bool              `json:"disabled,omitempty"`
		Tools          []policyJSON      `json:"tools,omitempty"`
	}{
		Type: e.Kind, Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Dir,
		URL: e.URL, Headers: e.Headers, HeadersHelper: e.HeadersHelper,
		Timeout: int64(e.CallTimeout / time.Millisecond), ConnectTimeout: int64(e.ConnectTimeout / time.Millisecond),
		MaxMessage: e.MaxMessageBytes, AlwaysLoad: e.AlwaysLoad, Required: e.Required, Disabled: e.Disabled,
	}
	if e.OAuth != nil {
		out.OAuth = &oauthJSON{e.OAuth.ClientID, e.OAuth.ClientSecret, e.OAuth.CallbackPort, e.OAuth.MetadataURL, e.OAuth.Scopes}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Policies)) {
		out.Tools = append(out.Tools, policyJSON{name, string(e.Policies[name])})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// CheckEntry returns the problems that [Parse] reports for an entry, without lines.
func CheckEntry(name string, entry json.RawMessage, o *ParseOptions) []Problem {
	_, problems := Parse(fmt.Appendf(nil, "{%q:{%s:%s}}", serversKey, []byte(hujson.String(name)), entry), o)
	for i := range problems {
		problems[i].Line, problems[i].Column = 0, 0
	}
	return problems
}
