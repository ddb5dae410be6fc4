package mcpserver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func reads(r *mcp.ReadResourceResult, err error) ResourceReader {
	return func(context.Context) (*mcp.ReadResourceResult, error) { return r, err }
}

// R50
func TestListResources(t *testing.T) {
	s := newTestServer(t, nil)
	if err := errors.Join(
		s.AddResource(&mcp.Resource{URI: "mem:b", Name: "b", Title: "B", Description: "the b", MIMEType: "text/plain", Size: 3}, reads(nil, nil)),
		s.AddResource(&mcp.Resource{URI: "mem:a"}, reads(nil, nil)),
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "row:{id}"}, func(context.Context, string, map[string]string) (*mcp.ReadResourceResult, error) { return nil, nil }),
	); err != nil {
		t.Fatal(err)
	}
	want := `[{"description":"the b","mimeType":"text/plain","name":"b","size":3,"title":"B","uri":"mem:b"},{"name":"mem:a","uri":"mem:a"}]`
	if got := jsonOf(t, s.ListResources()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := jsonOf(t, s.ListResourceTemplates()), `[{"name":"row:{id}","uriTemplate":"row:{id}"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// R52 R53 R55 R56 R62
func TestReadResource(t *testing.T) {
	s := newTestServer(t, nil)
	same := TextResource("mem:a", "text/plain", "content")
	var panicked ResourceReader = func(context.Context) (*mcp.ReadResourceResult, error) { panic("secret") }
	for uri, read := range map[string]ResourceReader{
		"mem:a": reads(same, nil), "mem:nil": reads(nil, nil), "mem:none": reads(&mcp.ReadResourceResult{}, nil), "mem:panic": panicked,
		"mem:empty": reads(&mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{}}, nil), "mem:fails": reads(nil, errTest),
		"mem:blob": reads(BlobResource("mem:blob", "", nil), nil),
	} {
		if err := s.AddResource(&mcp.Resource{URI: uri}, read); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := s.ReadResource(t.Context(), "mem:a"); err != nil || r != same {
		t.Errorf("got %+v, %v, want the reader's own result", r, err)
	}
	for _, uri := range []string{"mem:b", "mem:A", "mem:a/", "MEM:a", ""} {
		_, err := s.ReadResource(t.Context(), uri)
		var missing *NotFoundError
		if !errors.As(err, &missing) || missing.Name != uri || err.Error() != "Resource '"+uri+"' not found" {
			t.Errorf("%q: got %v", uri, err)
		}
	}
	for _, uri := range []string{"mem:nil", "mem:none"} {
		if _, err := s.ReadResource(t.Context(), uri); err == nil || !strings.Contains(err.Error(), uri) || !strings.Contains(err.Error(), "contents") {
			t.Errorf("%s: got %v", uri, err)
		}
	}
	if r, err := s.ReadResource(t.Context(), "mem:empty"); err != nil || len(r.Contents) != 0 {
		t.Errorf("empty: %+v, %v", r, err)
	}
	if _, err := s.ReadResource(t.Context(), "mem:fails"); err != errTest { //nolint:errorlint // unchanged
		t.Errorf("the reader's error became %v", err)
	}
	if _, err := s.ReadResource(t.Context(), "mem:panic"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("panic: %v", err)
	}
	if r, err := s.ReadResource(t.Context(), "mem:blob"); err != nil || r.Contents[0].Blob == nil {
		t.Errorf("an empty blob: %+v, %v", r, err)
	}
}

func TestResourceTemplates(t *testing.T) {
	s := newTestServer(t, nil)
	reader := func(name string) TemplateReader {
		return func(_ context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error) {
			if vars["id"] == "0" {
				return nil, &NotFoundError{KindResource, uri}
			}
			return TextResource(uri, "", name+" "+jsonOf(t, vars)), nil
		}
	}
	if err := errors.Join(
		s.AddResource(&mcp.Resource{URI: "row:7/name"}, reads(TextResource("row:7/name", "", "exact"), nil)),
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "row:{id}/{field}"}, reader("first")),
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "row:{+rest}"}, reader("second")),
	); err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"row:7/name": "exact", "row:8/name": `first {"field":"name","id":"8"}`, "row:a%20b/c": `first {"field":"c","id":"a b"}`,
		"row:x/y/z": `second {"rest":"x/y/z"}`,
	} {
		if r, err := s.ReadResource(t.Context(), uri); err != nil || r.Contents[0].Text != want {
			t.Errorf("%s: got %+v, %v; want %s", uri, r, err, want)
		}
	}
	var missing *NotFoundError
	for _, uri := range []string{"row:0/x", "col:1"} {
		if _, err := s.ReadResource(t.Context(), uri); !errors.As(err, &missing) || missing.Name != uri {
			t.Errorf("%s: got %v", uri, err)
		}
	}
}

// R63
func TestBadResourcesAreLeftOut(t *testing.T) {
	s := newTestServer(t, nil)
	tmpl := func(context.Context, string, map[string]string) (*mcp.ReadResourceResult, error) { return nil, nil }
	first := reads(TextResource("mem:a", "", "first"), nil)
	for i, tt := range []struct {
		err        error
		kind       Kind
		name, says string
	}{
		{s.AddResource(&mcp.Resource{URI: "mem:a"}, first), "", "", ""},
		{s.AddResource(&mcp.Resource{URI: "mem:a"}, reads(nil, nil)), KindResource, "mem:a", "taken"},
		{s.AddResource(&mcp.Resource{}, first), KindResource, "", "no URI"},
		{s.AddResource(nil, first), KindResource, "", "nil"},
		{s.AddResource(&mcp.Resource{URI: "mem:b"}, nil), KindResource, "mem:b", "no reader"},
		{s.AddResource(&mcp.Resource{URI: "b"}, first), KindResource, "b", "no scheme"},
		{s.AddResource(&mcp.Resource{URI: "http://[::1"}, first), KindResource, "http://[::1", ""},
		{s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "row:{id"}, tmpl), KindResourceTemplate, "row:{id", "malformed"},
		{s.AddResourceTemplate(&mcp.ResourceTemplate{}, tmpl), KindResourceTemplate, "", "no URI template"},
		{s.AddResourceTemplate(nil, tmpl), KindResourceTemplate, "", "nil"},
		{s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "row:{id}"}, nil), KindResourceTemplate, "row:{id}", "no reader"},
		{s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "row:{id}"}, tmpl), "", "", ""},
		{s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "row:{id}"}, tmpl), KindResourceTemplate, "row:{id}", "taken"},
	} {
		if (tt.err == nil) != (tt.kind == "") || tt.err != nil && !strings.Contains(tt.err.Error(), tt.says) {
			t.Errorf("%d: got %v, want %q", i, tt.err, tt.says)
		}
	}
	if n := len(s.Rejected()); n < 10 {
		t.Errorf("%d rejections: %v", n, s.Rejected())
	}
	if r, err := s.ReadResource(t.Context(), "mem:a"); err != nil || r.Contents[0].Text != "first" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestReadsThatAreCutShort(t *testing.T) {
	s := newTestServer(t, nil)
	if err := s.AddResource(&mcp.Resource{URI: "mem:slow"}, func(ctx context.Context) (*mcp.ReadResourceResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := s.ReadResource(ctx, "mem:slow"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := s.ReadResource(ctx, "mem:slow"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	ss := s.NewSession(nil)
	_ = ss.Close()
	if _, err := ss.ReadResource(t.Context(), "mem:slow"); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
