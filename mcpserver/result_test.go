package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// T20 T21 T22 T27 T28 T29 T30 T31 T32 T33 T34 T35 T37 T38 T46 B24
func TestResultForms(t *testing.T) {
	size := int64(12)
	tests := []struct {
		name   string
		result *Result
		want   string
	}{
		{"text", Text("a <b> & \u2028"), `{"content":[{"type":"text","text":"a <b> & \u2028"}],"isError":false}`},
		{"text as error", Text("no").AsError(), `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		{"error", Errorf("got %d", 3), `{"content":[{"type":"text","text":"got 3"}],"isError":true}`},
		{"image", Image([]byte{1, 2}, nil), `{"content":[{"type":"image","mimeType":"image/png","data":"AQI="}],"isError":false}`},
		{
			"image with options", Image([]byte{1}, &MediaOptions{MIMEType: "image/webp", Annotations: &mcp.Annotations{Audience: []mcp.Role{"user"}}, Meta: mcp.Meta{"k": 1}}).AsError(),
			`{"content":[{"type":"image","mimeType":"image/webp","data":"AQ==","_meta":{"k":1},"annotations":{"audience":["user"]}}],"isError":true}`,
		},
		{"image, options without type", Image(nil, &MediaOptions{}), `{"content":[{"type":"image","mimeType":"image/png","data":""}],"isError":false}`},
		{"audio", Audio([]byte{3}, nil), `{"content":[{"type":"audio","mimeType":"audio/wav","data":"Aw=="}],"isError":false}`},
		{"audio with options", Audio([]byte{3}, &MediaOptions{MIMEType: "audio/ogg"}).AsError(), `{"content":[{"type":"audio","mimeType":"audio/ogg","data":"Aw=="}],"isError":true}`},
		{"link", ResourceLink("file:///a", nil), `{"content":[{"type":"resource_link","mimeType":"text/plain","uri":"file:///a","name":"file:///a"}],"isError":false}`},
		{
			"link with options", ResourceLink("file:///a", &LinkOptions{
				Name: "a", Title: "A", Description: "the a", MIMEType: "text/csv", Size: &size, Annotations: &mcp.Annotations{Priority: 1},
			}).AsError(),
			`{"content":[{"type":"resource_link","mimeType":"text/csv","uri":"file:///a","name":"a","title":"A","description":"the a","size":12,"annotations":{"priority":1}}],"isError":true}`,
		},
		{
			"embedded", Embedded(&mcp.ResourceContents{URI: "mem:a", MIMEType: "text/plain", Text: "x"}),
			`{"content":[{"type":"resource","resource":{"uri":"mem:a","mimeType":"text/plain","text":"x"}}],"isError":false}`,
		},
		{
			"structured", Structured(map[string]any{"a": 1}),
			`{"content":[{"type":"text","text":"{\"a\":1}"}],"isError":false,"structuredContent":{"a":1}}`,
		},
		{"structured as error", Structured([]int{1}).AsError(), `{"content":[{"type":"text","text":"[1]"}],"isError":true,"structuredContent":[1]}`},
		{"structured, impossible", Structured(math.Inf(1)), `{"content":[{"type":"text","text":"encoding the structured result: json: unsupported value: +Inf"}],"isError":true}`},
		{
			"mixed", Mixed(&mcp.TextContent{Text: "see"}, &mcp.ImageContent{MIMEType: "image/gif"}),
			`{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/gif","data":""}],"isError":false}`,
		},
		{"nothing", &Result{}, `{"content":[],"isError":false}`},
	}
	for _, tt := range tests {
		got, err := tt.result.MarshalJSON()
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v\nwant %s", tt.name, got, err, tt.want)
			continue
		}
		var back Result
		if err := json.Unmarshal(got, &back); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if again := jsonOf(t, &back); again != jsonOf(t, tt.result) {
			t.Errorf("%s came back as %s", tt.name, again)
		}
	}
}

func TestAsErrorLeavesTheResultAlone(t *testing.T) {
	r := Text("x")
	if !r.AsError().IsError || r.IsError {
		t.Error("AsError changed its receiver")
	}
}

func TestText(t *testing.T) {
	r := Mixed(&mcp.TextContent{Text: "a"}, &mcp.ImageContent{}, nil, (*mcp.TextContent)(nil), &mcp.TextContent{Text: "b"})
	if got := r.Text(); got != "a\nb" {
		t.Errorf("got %q", got)
	}
}

// B24 B27. R29 has no counterpart: the keys of JSON are strings.
func TestDecodingResults(t *testing.T) {
	var r Result
	text := `{"content":[{"type":"text","text":12.0,"annotations":{"priority":0.5}},{"type":"x/new","y":1}],"structuredContent":null,"k":"v","requestState":"s"}`
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	want := `{"content":[{"type":"text","text":"12.0","annotations":{"priority":0.5}},{"type":"x/new","y":1}],"isError":false,"requestState":"s","k":"v"}`
	if got := jsonOf(t, &r); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if u, ok := r.Content[1].(*UnknownContent); !ok || u.Type != "x/new" {
		t.Errorf("the unknown block is %#v", r.Content[1])
	}
	for _, bad := range []string{`[]`, `{}`, `{"content":{}}`, `{"content":[{}]}`, `{"content":["x"]}`, `{"content":[],"_meta":7}`} {
		kept := Result{RequestState: "kept"}
		if err := json.Unmarshal([]byte(bad), &kept); err == nil || kept.RequestState != "kept" {
			t.Errorf("%s: got %v, and the result is %+v", bad, err, kept)
		}
	}
	if _, err := Mixed(nil).MarshalJSON(); err == nil {
		t.Error("a nil block was encoded")
	}
}

// T03 T35 T36 T37
func TestStructuredResultsAreChecked(t *testing.T) {
	s := newTestServer(t, nil)
	var result *Result
	if err := s.AddTool(&Tool{
		Name: "count", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9}},"required":["n"]}`),
	}, func(context.Context, json.RawMessage) (*Result, error) { return result, nil }); err != nil {
		t.Fatal(err)
	}
	result = Structured(map[string]int{"n": 5})
	wantText(t, s, "count", `{}`, `{"n":5}`, false)
	result = &Result{StructuredContent: json.RawMessage(`{"n":5}`)}
	wantText(t, s, "count", `{}`, `{"n":5}`, false) // text for clients that read only that
	if len(result.Content) != 0 {
		t.Error("the handler's result was changed")
	}
	result = Structured(map[string]int{"n": 10})
	wantFailure(t, s, "count", `{}`, "do not match the output schema", "/n: expected at most 9, got the number 10")
	result = Text("five")
	wantFailure(t, s, "count", `{}`, "no structured content")
	result = &Result{StructuredContent: json.RawMessage(`{"n":`)}
	wantFailure(t, s, "count", `{}`, "not valid JSON")
	// An error of the tool is not masked by the schema.
	result = Errorf("the counter is broken")
	wantText(t, s, "count", `{}`, "the counter is broken", true)
	result = Structured(map[string]string{"n": "no"}).AsError()
	wantText(t, s, "count", `{}`, `{"n":"no"}`, true)
}

// T39 T42 T43 T40
func TestValidateInputAndOutput(t *testing.T) {
	s := newTestServer(t, nil)
	if err := s.AddTool(&Tool{
		Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`),
		OutputSchema: json.RawMessage(`{"type":"array"}`),
	}, returns(nil, nil)); err != nil {
		t.Fatal(err)
	}
	addRaw(t, s, "u", returns(nil, nil))
	tests := []struct {
		name  string
		err   error
		valid bool
	}{
		{"good input", s.ValidateInput("t", json.RawMessage(`{"a":1}`)), true},
		{"bad input", s.ValidateInput("t", json.RawMessage(`{"a":"x"}`)), false},
		{"good output", s.ValidateOutput("t", json.RawMessage(`[]`)), true},
		{"bad output", s.ValidateOutput("t", json.RawMessage(`{}`)), false},
		{"no output schema", s.ValidateOutput("u", json.RawMessage(`{}`)), true},
		{"no such tool", s.ValidateInput("v", json.RawMessage(`{}`)), false},
		{"no such tool", s.ValidateOutput("v", json.RawMessage(`{}`)), false},
	}
	for _, tt := range tests {
		if (tt.err == nil) != tt.valid {
			t.Errorf("%s: %v", tt.name, tt.err)
		}
	}
}

var errTest = errors.New("test")

// What is wrong with a result is said with its place.
func TestErrorsOfResults(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:                             "decoding a tool result: it has no content array",
		`{"content":null}`:               "decoding a tool result: it has no content array",
		`{"content":{}}`:                 "decoding a tool result: it has no content array",
		`{"content":[],"isError":"yes"}`: "decoding a tool result: isError: json: cannot unmarshal string into Go value of type bool",
	} {
		if err := new(Result).UnmarshalJSON([]byte(raw)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}
