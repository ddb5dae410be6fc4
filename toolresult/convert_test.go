package toolresult

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/mcpserver"
)

func pngOf(t testing.TB, w, h int, noisy bool) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	if noisy {
		r := rand.New(rand.NewPCG(1, 2))
		for i := range img.Pix {
			img.Pix[i] = byte(r.Uint32())
		}
	} else {
		img.Set(0, 0, color.White)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// F26 F36, pains 35 and 36: the conversion table.
func TestModelContent(t *testing.T) {
	tiny := pngOf(t, 2, 2, false)
	text := func(s string) Block { return Block{Type: "text", Text: s} }
	img := Block{Type: "image", MIMEType: "image/png", Data: tiny}
	tests := []struct {
		name string
		in   mcpserver.Result
		want []Block
	}{
		{"text", mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.TextContent{Text: "b"}}}, []Block{text("a"), text("b")}},
		{"blank text is left out", mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{}, &mcp.TextContent{Text: " \n"}, &mcp.TextContent{Text: "b"}}}, []Block{text("b")}},
		{"nothing", mcpserver.Result{}, []Block{text("(mcp__s__t completed with no output)")}},
		{"blank text alone", mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: ""}}}, []Block{text("(mcp__s__t completed with no output)")}},
		{"invalid UTF-8", mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: "a\xffb"}}}, []Block{text("a\uFFFDb")}},
		{"image", mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: tiny}}}, []Block{img}},
		{"image with the wrong type", mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/jpeg", Data: tiny}}}, []Block{img}},
		{
			"no image at all",
			mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: []byte("hello")}}},
			[]Block{text("[Image from s, not shown: its data is not PNG, JPEG, GIF or WebP] Binary content (image/png, 5 bytes)")},
		},
		{
			"broken image",
			mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: tiny[:20]}}},
			[]Block{text("[Image from s, not shown: its data is broken] Binary content (image/png, 20 bytes)")},
		},
		{
			"image beside structured content",
			mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: tiny}}, StructuredContent: json.RawMessage(`{"a": 1}`)},
			[]Block{img, text(`{"a":1}`)},
		},
		{
			"text beside structured content",
			mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: "a is one"}}, StructuredContent: json.RawMessage(`{"a":1}`)},
			[]Block{text("a is one"), text(`{"a":1}`)},
		},
		{
			"text that is the structured content",
			mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: "{\n \"a\": 1\n}"}}, StructuredContent: json.RawMessage(`{"a":1}`)},
			[]Block{text("{\n \"a\": 1\n}")},
		},
		{"structured content alone", mcpserver.Result{StructuredContent: json.RawMessage(`[1]`)}, []Block{text("[1]")}},
		{
			"audio",
			mcpserver.Result{Content: []mcp.Content{&mcp.AudioContent{MIMEType: "audio/wav", Data: make([]byte, 12)}}},
			[]Block{text("[Audio from s] Binary content (audio/wav, 12 bytes)")},
		},
		{
			"resource text",
			mcpserver.Result{Content: []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://a", Text: "hi"}}}},
			[]Block{text("[Resource from s at mem://a] hi")},
		},
		{
			"resource blob",
			mcpserver.Result{Content: []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://a", Blob: []byte{1}}}}},
			[]Block{text("[Resource from s at mem://a] Binary content (unknown type, 1 bytes)")},
		},
		{
			"resource image",
			mcpserver.Result{Content: []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://a", MIMEType: "image/png", Blob: tiny}}}},
			[]Block{text("[Resource from s at mem://a]"), img},
		},
		{"resource without contents", mcpserver.Result{Content: []mcp.Content{&mcp.EmbeddedResource{}}}, []Block{text("(mcp__s__t completed with no output)")}},
		{
			"resource link",
			mcpserver.Result{Content: []mcp.Content{&mcp.ResourceLink{Name: "a", URI: "mem://a", Description: "the a"}, &mcp.ResourceLink{Name: "b", URI: "mem://b"}}},
			[]Block{text("[Resource link: a] mem://a (the a)"), text("[Resource link: b] mem://b")},
		},
		{
			"tool use, which belongs elsewhere",
			mcpserver.Result{Content: []mcp.Content{&mcp.ToolUseContent{ID: "1", Name: "n"}}},
			[]Block{text(`{"type":"tool_use","id":"1","name":"n","input":{}}`)},
		},
		{
			"error",
			mcpserver.Result{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no"}, &mcp.ImageContent{MIMEType: "image/png", Data: tiny}}},
			[]Block{text("no"), text("[Image left out: an error result has text only (image/png, " + itoa(len(tiny)) + " bytes)]")},
		},
		{
			"an image that ends too early",
			mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: tiny[:len(tiny)-14]}}},
			[]Block{text("[Image from s, not shown: its data is broken] Binary content (image/png, " + itoa(len(tiny)-14) + " bytes)")},
		},
		{
			"nil blocks of a server in this process",
			mcpserver.Result{Content: []mcp.Content{nil, (*mcp.TextContent)(nil), (*mcp.ImageContent)(nil), (*mcp.ResourceLink)(nil), &mcp.TextContent{Text: "b"}}},
			[]Block{text("b")},
		},
		{
			"resource blob that is text",
			mcpserver.Result{Content: []mcp.Content{
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://a", MIMEType: "text/csv; charset=utf-8", Blob: []byte("a,b")}},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://b", MIMEType: "image/svg+xml", Blob: []byte("<svg/>")}},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://c", MIMEType: "text/plain", Blob: []byte("\xff")}},
			}},
			[]Block{
				text("[Resource from s at mem://a] a,b"), text("[Resource from s at mem://b] <svg/>"),
				text("[Resource from s at mem://c] Binary content (text/plain, 1 bytes)"),
			},
		},
		{
			"empty resource",
			mcpserver.Result{Content: []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://a"}}}},
			[]Block{text("[Resource from s at mem://a] (empty)")},
		},
		{
			"resource link without a name",
			mcpserver.Result{Content: []mcp.Content{&mcp.ResourceLink{URI: "mem://a"}}},
			[]Block{text("[Resource link: mem://a] mem://a")},
		},
		{
			"structured content that wraps the text",
			mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: "it's \"fine\""}}, StructuredContent: json.RawMessage(`{"result":"it's \"fine\""}`)},
			[]Block{text("it's \"fine\"")},
		},
		{
			"structured content that wraps a list of the texts",
			mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.TextContent{Text: "2"}, &mcp.TextContent{Text: `{"b": 1}`}}, StructuredContent: json.RawMessage(`{"result":["a",2,{"b":1}]}`)},
			[]Block{text("a"), text("2"), text(`{"b": 1}`)},
		},
		{
			"structured content that wraps more than the texts",
			mcpserver.Result{Content: []mcp.Content{&mcp.TextContent{Text: "a"}}, StructuredContent: json.RawMessage(`{"result":["a","b"]}`)},
			[]Block{text("a"), text(`{"result":["a","b"]}`)},
		},
		{"error that says nothing", mcpserver.Result{IsError: true}, []Block{text("(mcp__s__t failed without saying why)")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Convert(t.Context(), "s", "t", &tt.in, nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// F26: an image above the limits is scaled down, one within is untouched.
func TestLargeImages(t *testing.T) {
	large := pngOf(t, 1600, 1600, true) // about 10 MB
	got := Convert(t.Context(), "s", "t", &mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: large}}}, nil)
	if len(got) != 2 || got[0].Type != "image" || base64Len(got[0].Data) > DefaultMaxImageBytes || !strings.Contains(got[1].Text, "scaled down from 1600 by 1600 pixels") {
		t.Errorf("got %d blocks, %d bytes, %q", len(got), len(got[0].Data), got[len(got)-1].Text)
	}
	wide := pngOf(t, 9000, 2, false)
	got = Convert(t.Context(), "s", "t", &mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: wide}}}, nil)
	cfg, _, err := image.DecodeConfig(bytes.NewReader(got[0].Data))
	if err != nil || cfg.Width > maxImageSide {
		t.Errorf("a side of 9000 became %d, %v", cfg.Width, err)
	}
	medium := pngOf(t, 500, 500, true) // about 1 MB
	got = Convert(t.Context(), "s", "t", &mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: medium}}}, nil)
	if len(got) != 1 || !bytes.Equal(got[0].Data, medium) {
		t.Error("an image within the limits was touched")
	}
}

// Many images do not outgrow a request, and many texts become one.
func TestManyBlocks(t *testing.T) {
	large, small := &mcp.ImageContent{MIMEType: "image/png", Data: pngOf(t, 950, 950, true)}, &mcp.ImageContent{MIMEType: "image/png", Data: pngOf(t, 2, 2, false)}
	var r mcpserver.Result
	for range 6 {
		r.Content = append(r.Content, large)
	}
	for range 30 {
		r.Content = append(r.Content, small, &mcp.TextContent{Text: "t"})
	}
	for range 200 {
		r.Content = append(r.Content, &mcp.TextContent{Text: "x"})
	}
	images, total, left, longest := 0, 0, 0, ""
	blocks := Convert(t.Context(), "s", "t", &r, nil)
	for _, b := range blocks {
		if b.Type == "image" {
			images++
			total += base64Len(b.Data)
		}
		left += strings.Count(b.Text, "not shown: a result can show 20]")
		if len(b.Text) > len(longest) {
			longest = b.Text
		}
	}
	if images != maxImages || total > maxImagesBytes || left != 16 || len(blocks) > maxBlocks || strings.Count(longest, "x\n") != 199 {
		t.Errorf("%d images of %d bytes, %d left out, %d blocks", images, total, left, len(blocks))
	}
}

func TestSavedContent(t *testing.T) {
	var names []string
	o := &ConvertOptions{Save: func(name, mimeType string, data []byte) (string, error) {
		names = append(names, name+" "+mimeType)
		return "/tmp/" + name, nil
	}}
	got := Convert(t.Context(), "s", "t", &mcpserver.Result{Content: []mcp.Content{
		&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte{1}},
		&mcp.ImageContent{MIMEType: "image/png", Data: pngOf(t, 1, 1, false)},
	}}, o)
	if len(got) != 3 || got[0].Text != "[Audio from s] Binary content (audio/wav, 1 bytes) saved to /tmp/mcp__s__t-1" || got[2].Text != "[Image: source: /tmp/mcp__s__t-2]" {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"mcp__s__t-1 audio/wav", "mcp__s__t-2 image/png"}, names); diff != "" {
		t.Error(diff)
	}
}

// Whatever a server sends, what comes out can be sent to a model.
func FuzzModelContent(f *testing.F) {
	image := base64.StdEncoding.EncodeToString(pngOf(f, 2, 2, false))
	for _, seed := range []string{
		`{"content":[{"type":"text","text":""},{"type":"image","data":"AAAA"}],"structuredContent":{}}`,
		`{"content":[{"type":"image","mimeType":"image/png","data":"` + image + `"},{"type":"image","data":"` + image[:40] + `"}],"isError":false}`,
		`{"content":[{"type":"text","text":"lone \ud800"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"odd","x":"\udfff"}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"mem://a","blob":"` + image + `","mimeType":"image/png"}},{"type":"resource","resource":{"uri":"b","text":"t"}}]}`,
		`{"content":[{"type":"resource_link","uri":"mem://a","name":"n"},null,7,[],"text"],"isError":true}`,
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"1"}],"structuredContent":{"result":["a",1]}}`,
		`{"content":{"type":"text","text":"alone"},"structuredContent":"\ud800"}`, `{"toolResult":[1,2]}`, `{"content":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		r, err := Decode(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
		if err != nil {
			return
		}
		blocks := Convert(t.Context(), "s", "t", r, nil)
		if len(blocks) == 0 {
			t.Fatal("no blocks")
		}
		for _, b := range blocks {
			if b.Type == "text" && (strings.TrimSpace(b.Text) == "" || !utf8.ValidString(b.Text)) || b.Type == "image" && (r.IsError || !readable[b.MIMEType]) {
				t.Errorf("bad block %+v", b)
			}
		}
		stored := ""
		for _, b := range Fit(t.Context(), blocks, &FitOptions{
			IsError: r.IsError, Limits: Limits{Tokens: 10, Chars: 30}, ReadTool: "Read",
			Store: func(text string) (string, error) { stored = text; return "/store/1", nil },
		}) {
			if b.Type == "text" && (b.Text == "" || !utf8.ValidString(b.Text)) {
				t.Errorf("bad block within limits %+v", b)
			}
		}
		if stored != "" {
			if part, err := read(t.Context(), stored, Query{Pattern: "[a-z]"}); err != nil || !utf8.ValidString(part) {
				t.Errorf("read back %q, %v", part, err)
			}
		}
	})
}

// A text that comes again as the only member of the structured content is shown once, under whatever name it comes.
// fault B21
func TestStructuredContentThatRepeatsTheText(t *testing.T) {
	const text = "line 1\nline \"2\""
	in := func(structured string, texts ...string) *mcpserver.Result {
		r := &mcpserver.Result{StructuredContent: json.RawMessage(structured)}
		for _, s := range texts {
			r.Content = append(r.Content, &mcp.TextContent{Text: s})
		}
		return r
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		in   *mcpserver.Result
		want int // blocks
	}{
		{"content", in(`{"content":`+string(quoted)+`}`, text), 1},
		{"another name", in(`{ "output" : `+string(quoted)+` }`, text), 1},
		{"in two blocks", in(`{"content":`+string(quoted)+`}`, "line 1", `line "2"`), 2},
		{"another text", in(`{"content":"line 1"}`, text), 2},
		{"two members", in(`{"content":`+string(quoted)+`,"more":true}`, text), 2},
		{"no text", in(`{"content":12}`, "12"), 2},
		{"result, any value", in(`{"result":12.0}`, "12"), 1},
	} {
		got := Convert(t.Context(), "s", "t", tt.in, nil)
		if len(got) != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// The work of converting a result grows with its size: structured content is not read once for each text, and
// neither is a block once for each other.
func TestConvertingGrows(t *testing.T) {
	growth.Check(t, 400, func(n int) int {
		var structured, blocks strings.Builder
		for i := range n {
			structured.WriteString(`,"k` + itoa(i) + `":[{"a":1}]`)
			blocks.WriteString(`,{"type":"text","text":"{\"a\":` + itoa(i) + `}"}`)
		}
		raw := []byte(`{"content":[` + blocks.String()[1:] + `],"structuredContent":{` + structured.String()[1:] + `}}`)
		return growth.Bytes(func() {
			res, err := Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			Convert(t.Context(), "s", "t", res, nil)
		})
	})
}
