package mcphost

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

const (
	// cacheFormat is the version of the files. Others are ignored.
	cacheFormat = 1
	// cacheAge is how long an entry is valid.
	cacheAge = 24 * time.Hour
	// cacheBytes limits the size of a file.
	cacheBytes = 16 << 20
)

// A toolCache stores the tool lists of remote servers, so that the next run need not wait for them.
// It has no credentials.
//
// An entry is for one name, transport, URL, set of headers and login, so that no account sees the
// list of another. A login is identified by its refresh or access token. Servers with computed
// headers or an HTTP client of the program have no entries, since their account is not known before
// a request. An entry is valid for a day. Each connection and each change of the list replaces it.
// It is deleted when the server refuses the connection (HTTP 401, 403, 404) or it cannot be read. A
// call of a tool that the server no longer has connects and fails like one of an unknown tool.
//
// Files are replaced atomically, with permissions for the user only.
type toolCache struct {
	dir string
	now func() time.Time
}

// newToolCache returns the cache of the options, nil for none.
func newToolCache(o *Options) *toolCache {
	dir := o.CacheDir
	if dir == "" {
		if v, _ := o.lookupEnv(envDiscoveryCache); v != "1" {
			return nil
		}
		base, err := os.UserCacheDir()
		if err != nil {
			o.Logger.Warn("discovery cache is off: no directory for it", "error", err)
			return nil
		}
		dir = filepath.Join(base, "tenon", "mcp-discovery")
	}
	return &toolCache{dir: dir, now: time.Now}
}

// A cacheEntry is the content of a file.
type cacheEntry struct {
	Format       int                     `json:"format"`
	Saved        time.Time               `json:"saved"`
	Server       *mcp.Implementation     `json:"server,omitempty"`
	Version      string                  `json:"protocolVersion,omitempty"`
	Instructions string                  `json:"instructions,omitempty"`
	Capabilities *mcp.ServerCapabilities `json:"capabilities,omitempty"`
	Tools        []json.RawMessage       `json:"tools"`
}

// path returns the file of a server for the current login. It reports false if there is none. The
// name has 32 bits of a hash of the secret values: enough to tell accounts apart and too little to
// find a value.
func (tc *toolCache) path(ctx context.Context, name string, cfg ServerConfig) (string, bool) {
	var c HTTP
	switch cfg := cfg.(type) {
	case HTTP:
		c = cfg
	case SSE:
		c = HTTP(cfg)
	}
	if c.HeadersFunc != nil || c.HTTPClient != nil {
		return "", false
	}
	url, headers, account := c.URL, c.Headers, ""
	if c.Auth != nil {
		switch login, err := c.Auth.Credentials(ctx); {
		case errors.Is(err, mcpauth.ErrNotFound):
		case err != nil:
			return "", false
		default:
			account = cmp.Or(login.RefreshToken, login.AccessToken)
		}
	}
	h := sha256.New()
	for _, s := range []string{name, cfg.transport(), secret.SafeRawURL(url)} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	values := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(headers)) {
		fmt.Fprintf(h, "%d:%s", len(k), k)
		fmt.Fprintf(values, "%d:%s", len(headers[k]), headers[k])
	}
	fmt.Fprintf(values, "%d:%s%d:%s", len(url), url, len(account), account)
	fmt.Fprintf(h, "%08x", binary.BigEndian.Uint32(values.Sum(nil)))
	return filepath.Join(tc.dir, hex.EncodeToString(h.Sum(nil))[:32]+".json"), true
}

// load returns the valid entry of a server.
func (tc *toolCache) load(ctx context.Context, name string, cfg ServerConfig) (linkInfo, toolList, bool) {
	path, ok := tc.path(ctx, name, cfg)
	if !ok {
		return linkInfo{}, toolList{}, false
	}
	e, err := tc.read(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(path) // it would fail again next time
		}
		return linkInfo{}, toolList{}, false
	}
	info := linkInfo{Info: transport.Info{Server: e.Server, Version: e.Version, Instructions: e.Instructions, Capabilities: e.Capabilities}}
	var list toolList
	for _, raw := range e.Tools {
		t, err := decodeTool(raw)
		if err != nil {
			return linkInfo{}, toolList{}, false
		}
		t.Server = name
		list.tools = append(list.tools, t)
	}
	return info, list, true
}

func (tc *toolCache) read(path string) (*cacheEntry, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > cacheBytes || st.Mode().Perm()&0o022 != 0 {
		return nil, errors.New("the file is too large, or others may write to it")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var e cacheEntry
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, err
	}
	if age := tc.now().Sub(e.Saved); e.Format != cacheFormat || age < 0 || age > cacheAge {
		return nil, errors.New("the file is old, or of another format")
	}
	return &e, nil
}

// save stores the list of a connection.
func (tc *toolCache) save(ctx context.Context, name string, cfg ServerConfig, info linkInfo, list toolList) error {
	path, ok := tc.path(ctx, name, cfg)
	if !ok {
		return nil
	}
	e := cacheEntry{
		Format: cacheFormat, Saved: tc.now(), Server: info.Server, Version: info.Version,
		Instructions: info.Instructions, Capabilities: info.Capabilities, Tools: []json.RawMessage{},
	}
	for i := range list.tools {
		raw, err := encodeTool(&list.tools[i])
		if err != nil {
			return err
		}
		e.Tools = append(e.Tools, raw)
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if len(b) > cacheBytes {
		return fmt.Errorf("%d bytes are too many for the cache", len(b))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return file.Replace(path, b, 0o600, nil)
}

// drop deletes the entry of a server.
func (tc *toolCache) drop(ctx context.Context, name string, cfg ServerConfig) {
	if path, ok := tc.path(ctx, name, cfg); ok {
		_ = os.Remove(path) // it may not be there
	}
}

// encodeTool encodes a tool in the form of tools/list.
func encodeTool(t *Tool) (json.RawMessage, error) {
	w := mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		Annotations: t.Annotations, Icons: t.Icons, Meta: t.Meta,
	}
	if t.OutputSchema != nil {
		w.OutputSchema = t.OutputSchema
	}
	return json.Marshal(w)
}
