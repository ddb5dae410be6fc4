package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"
)

// AddResource adds a resource. Its URI must have a scheme. A resource without a name
// is listed under its URI. An invalid registration is rejected as by
// [Server.AddTool]. AddResource copies r.
func (s *Server) AddResource(r *mcp.Resource, h ResourceReader) error {
	if r == nil {
		return s.reject(KindResource, "", errors.New("the resource is nil"))
	}
	listed, err := copyJSON(r)
	switch {
	case err != nil:
	case h == nil:
		err = errors.New("it has no reader")
	case r.URI == "":
		err = errors.New("it has no URI")
	default:
		err = checkURI(r.URI)
	}
	if err != nil {
		return s.reject(KindResource, r.URI, err)
	}
	if listed.Name == "" {
		listed.Name = listed.URI
	}
	if !s.change(MethodResourceListChanged, func(f *features) bool { return f.resources.add(r.URI, &resource{listed, h}) }) {
		return s.reject(KindResource, r.URI, errDuplicate)
	}
	return nil
}

func checkURI(uri string) error {
	u, err := url.Parse(uri)
	if err != nil {
		return fmt.Errorf("its URI is malformed: %w", err)
	}
	if !u.IsAbs() {
		return errors.New("its URI has no scheme")
	}
	return nil
}

// RemoveResource removes resources and notifies all sessions. Unknown URIs are ignored.
func (s *Server) RemoveResource(uris ...string) {
	s.change(MethodResourceListChanged, func(f *features) bool { return f.resources.remove(uris) })
}

// AddResourceTemplate adds a template (RFC 6570) for URIs of resources. A resource
// with the exact URI takes precedence over templates, and an earlier template over a
// later one. A URI of more than 2,048 bytes matches no template, because matching
// takes quadratic time. The entries of a list variable are joined by commas. An
// invalid registration is rejected as by [Server.AddTool].
func (s *Server) AddResourceTemplate(t *mcp.ResourceTemplate, h TemplateReader) error {
	if t == nil {
		return s.reject(KindResourceTemplate, "", errors.New("the template is nil"))
	}
	made, err := makeTemplate(t, h)
	if err != nil {
		return s.reject(KindResourceTemplate, t.URITemplate, err)
	}
	if !s.change(MethodResourceListChanged, func(f *features) bool { return f.templates.add(t.URITemplate, made) }) {
		return s.reject(KindResourceTemplate, t.URITemplate, errDuplicate)
	}
	return nil
}

func makeTemplate(t *mcp.ResourceTemplate, h TemplateReader) (made *template, err error) {
	defer func() {
		if r := recover(); r != nil {
			made, err = nil, fmt.Errorf("the template cannot be used: %v", r)
		}
	}()
	if h == nil {
		return nil, errors.New("it has no reader")
	}
	if t.URITemplate == "" {
		return nil, errors.New("it has no URI template")
	}
	listed, err := copyJSON(t)
	if err != nil {
		return nil, err
	}
	if listed.Name == "" {
		listed.Name = listed.URITemplate
	}
	parsed, err := uritemplate.New(t.URITemplate)
	if err != nil {
		return nil, fmt.Errorf("its URI template is malformed: %w", err)
	}
	return &template{listed: listed, parsed: parsed, pattern: parsed.Regexp(), read: h}, nil
}

// RemoveResourceTemplate removes templates and notifies all sessions. Unknown ones are ignored.
func (s *Server) RemoveResourceTemplate(uriTemplates ...string) {
	s.change(MethodResourceListChanged, func(f *features) bool { return f.templates.remove(uriTemplates) })
}

// maxTemplateURI is the longest URI in bytes that matches a template.
const maxTemplateURI = 2048

// match returns the variables of a URI, nil if the URI does not match.
func (t *template) match(uri string) map[string]string {
	if len(uri) > maxTemplateURI || !t.pattern.MatchString(uri) {
		return nil
	}
	values := t.parsed.Match(uri)
	vars := map[string]string{}
	for _, name := range t.parsed.Varnames() {
		value := values.Get(name)
		vars[name] = value.String()
		if list := value.List(); list != nil {
			vars[name] = strings.Join(list, ",")
		}
	}
	return vars
}

// knows reports whether the URI is that of a resource or matches a template.
func (r *registry) knows(uri string) bool {
	read, _ := r.reader(uri)
	return read != nil
}

// reader returns the reader for a URI, nil if there is none.
func (r *registry) reader(uri string) (ResourceReader, Kind) {
	if x := r.resources[uri]; x != nil {
		return x.read, KindResource
	}
	for _, t := range r.templates {
		if vars := t.match(uri); vars != nil {
			return func(ctx context.Context) (*mcp.ReadResourceResult, error) { return t.read(ctx, uri, vars) }, KindResourceTemplate
		}
	}
	return nil, ""
}

// ReadResource reads the resource with that URI, or one whose template matches it.
// An unknown URI is a [*NotFoundError]. It returns the reader's error unchanged. See
// [Server.CallTool] for the errors after the end of ctx or the server.
func (s *Server) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return s.read(ctx, nil, uri)
}

func (s *Server) read(ctx context.Context, ss *Session, uri string) (*mcp.ReadResourceResult, error) {
	read, kind := s.registry().reader(uri)
	if read == nil {
		return nil, &NotFoundError{KindResource, uri}
	}
	var r *mcp.ReadResourceResult
	input, err := s.runReader(ctx, ss, kind, uri, nil, func(ctx context.Context) (mcp.InputRequestMap, string, error) {
		var err error
		if r, err = read(ctx); r == nil {
			return nil, "", err
		}
		return r.InputRequests, r.RequestState, err
	})
	switch {
	case err != nil:
		return nil, err
	case input != nil:
		return &mcp.ReadResourceResult{InputRequests: input.InputRequests, RequestState: input.RequestState}, nil
	case r == nil || r.Contents == nil && r.InputRequests == nil:
		return nil, fmt.Errorf("Resource '%s' must return a *mcp.ReadResourceResult with contents, and its reader returned none", uri) //nolint:staticcheck // worded as NotFoundError
	}
	return r, nil
}

// ContentsJSON returns the JSON of the contents of a resource. Unlike the official
// library it writes the text of an empty text resource, and gives contents without
// a URI that of the resource.
func ContentsJSON(r *mcp.ReadResourceResult, uri string) (json.RawMessage, error) {
	type contents struct {
		URI      string   `json:"uri"`
		MIMEType string   `json:"mimeType,omitempty"`
		Text     *string  `json:"text,omitempty"`
		Blob     []byte   `json:"blob,omitzero"`
		Meta     mcp.Meta `json:"_meta,omitempty"`
	}
	all := make([]contents, 0, len(r.Contents))
	for _, c := range r.Contents {
		if c == nil {
			continue
		}
		one := contents{URI: cmp.Or(c.URI, uri), MIMEType: c.MIMEType, Blob: c.Blob, Meta: c.Meta}
		if c.Blob == nil || c.Text != "" {
			one.Text = &c.Text
		}
		all = append(all, one)
	}
	return encodeJSON(all)
}

// TextResource returns a result with a text.
func TextResource(uri, mimeType, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mimeType, Text: text}}}
}

// BlobResource returns a result with binary data, which it keeps.
func BlobResource(uri, mimeType string, data []byte) *mcp.ReadResourceResult {
	if data == nil {
		data = []byte{}
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mimeType, Blob: data}}}
}

// ReadResource reads a resource, as [Server.ReadResource] does.
func (ss *Session) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return ss.server.read(ctx, ss, uri)
}
