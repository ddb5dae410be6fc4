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
	// cacheFormat is the version of the files; those of another are ignored.
	cacheFormat = 1
	// cacheAge is how long an entry is good for.
	cacheAge = 24 * time.Hour
	// cacheBytes bounds one file.
	cacheBytes = 16 << 20
)

// A toolCache keeps the tool lists of remote servers between runs, so that a
// run need not wait for them. It holds no credentials.
//
// An entry belongs to one name, transport, URL, set of headers and login: one
// account never sees the list of another. Servers with computed headers or an
// HTTP client of the caller's have none, because who asks is known there only
// when the server is asked. A login is told by its refresh token or, without one,
// its access token. An entry is good for a day; each connection replaces it, and so does each change of the list
// that the server tells of. It is dropped when the server refuses the
// connection for good (HTTP 401, 403, 404), and when it cannot be read. A tool
// that the server has no more is found out when the first call connects: that
// call fails as one to an unknown tool.
//
// Files are written whole and then renamed, with permissions for the user alone.
type toolCache struct {
	dir string
	now func() time.Time
}

// newToolCache returns the cache that the options ask for; nil for none.
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

// A cacheEntry is one file.
type cacheEntry struct {
	Format       int                     `json:"format"`
	Saved        time.Time               `json:"saved"`
	Server       *mcp.Implementation     `json:"server,omitempty"`
	Version      string                  `json:"protocolVersion,omitempty"`
	Instructions string                  `json:"instructions,omitempty"`
	Capabilities *mcp.ServerCapabilities `json:"capabilities,omitempty"`
	Tools        []json.RawMessage       `json:"tools"`
}

// path is the file of a server, as the one who is logged in now sees it. It reports
// false if there can be none. Of the secret values it holds 32 bits of a hash:
// enough to tell two accounts apart, not enough to find a value by.
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

// load returns what is kept of a server, if it is good.
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

// save keeps what a connection told.
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

// drop forgets a server.
func (tc *toolCache) drop(ctx context.Context, name string, cfg ServerConfig) {
	if path, ok := tc.path(ctx, name, cfg); ok {
		_ = os.Remove(path) // it may not be there
	}
}

// encodeTool writes a tool as a server lists it.
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
