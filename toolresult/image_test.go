package toolresult

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// addChunk puts a chunk behind the header of a PNG, with a checksum that is off by so much.
func addChunk(data []byte, name string, body []byte, off uint32) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	chunk = append(append(chunk, name...), body...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:])+off)
	const afterHeader = len(pngSignature) + 25
	return slices.Concat(data[:afterHeader], chunk, data[afterHeader:])
}

func imageResult(images ...[]byte) *mcpserver.Result {
	r := &mcpserver.Result{}
	for _, data := range images {
		r.Content = append(r.Content, &mcp.ImageContent{MIMEType: "image/png", Data: data})
	}
	return r
}

// A PNG with a wrong checksum in an ancillary chunk is shown, without that chunk. One with a wrong checksum in a
// critical chunk is not.
// fault B22
func TestWrongChecksum(t *testing.T) {
	good := pngOf(t, 20, 20, true)
	for _, tt := range []struct {
		name string
		in   []byte
		want []byte // nil when it is not shown
	}{
		{"ancillary", addChunk(good, "tIME", []byte("1234567"), 1), good},
		{"ancillary, twice", addChunk(addChunk(good, "tEXt", []byte("a"), 1), "zTXt", nil, 5), good},
		{"ancillary, right", addChunk(good, "tEXt", []byte("Comment"), 0), addChunk(good, "tEXt", []byte("Comment"), 0)},
		{"critical", addChunk(good, "PLTE", []byte("123"), 1), nil},
	} {
		got := Convert(t.Context(), "s", "t", imageResult(tt.in), nil)
		if shown := got[0].Type == "image"; shown != (tt.want != nil) || shown && !bytes.Equal(got[0].Data, tt.want) {
			t.Errorf("%s: %s %q", tt.name, got[0].Type, got[0].Text)
		}
	}
	large := addChunk(pngOf(t, 2100, 4, false), "tIME", []byte("1234567"), 1)
	if got := Convert(t.Context(), "s", "t", imageResult(large), nil); got[0].Type != "image" || !strings.Contains(got[1].Text, "scaled down from 2100 by 4") {
		t.Errorf("to be scaled: %q", got[0].Text)
	}
}

// What ends too early is not shown, whatever its form, and neither is what holds less than its header says.
func TestTruncatedImages(t *testing.T) {
	img := image.NewPaletted(image.Rect(0, 0, 60, 60), palette.Plan9)
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7)
	}
	forms := map[string]func(w *bytes.Buffer) error{
		"gif":  func(w *bytes.Buffer) error { return gif.Encode(w, img, nil) },
		"jpeg": func(w *bytes.Buffer) error { return jpeg.Encode(w, img, nil) },
		"png":  func(w *bytes.Buffer) error { return png.Encode(w, img) },
	}
	for name, encode := range forms {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		whole := b.Bytes()
		if got := Convert(t.Context(), "s", "t", imageResult(whole), nil); got[0].Type != "image" || got[0].MIMEType != "image/"+name {
			t.Errorf("%s: %+v", name, got[0])
		}
		for _, n := range []int{1, 2, 13, len(whole) / 2, len(whole) - 60} {
			if got := Convert(t.Context(), "s", "t", imageResult(whole[:len(whole)-n]), nil); got[0].Type != "text" || !strings.Contains(got[0].Text, "its data is") {
				t.Errorf("%s without the last %d of %d bytes is shown", name, n, len(whole))
			}
		}
	}
	webp, err := base64.StdEncoding.DecodeString("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	if got := Convert(t.Context(), "s", "t", imageResult(webp), nil); got[0].Type != "image" {
		t.Errorf("webp: %q", got[0].Text)
	}
	if got := Convert(t.Context(), "s", "t", imageResult(webp[:len(webp)-4]), nil); got[0].Type != "text" {
		t.Error("a WebP that ends too early is shown")
	}
	if got := Convert(t.Context(), "s", "t", imageResult(pngHeader(10, 10, 8, 0)), nil); got[0].Type != "text" {
		t.Error("a PNG without pixels is shown")
	}
}

// An image that fits is not decoded: checking it takes next to no memory.
// fault B18
func TestFittingImagesAreNotDecoded(t *testing.T) {
	r := imageResult(pngOf(t, 2000, 2000, false))
	for range 19 {
		r.Content = append(r.Content, r.Content[0])
	}
	got := 0
	bytes := growth.Bytes(func() { got = len(Convert(t.Context(), "s", "t", r, nil)) })
	if decoded := 2000 * 2000 * 4; got != 20 || bytes > decoded/2 {
		t.Errorf("%d blocks took %d bytes, one decoded image has %d", got, bytes, decoded)
	}
}

// Images that have to be scaled are decoded one after the other, and those of all results at the same time share
// one budget of memory; the context of a result ends its wait.
// fault B18
func TestDecodingSharesABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := pngOf(t, 2100, 4, false)
		if err := decoding.acquire(t.Context(), decodeMemory); err != nil { // somebody decodes
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan []Block, 1), make(chan []Block, 1)
		go func() { first <- Convert(ctx, "s", "t", imageResult(large), nil) }()
		go func() { second <- Convert(t.Context(), "s", "t", imageResult(large, large), nil) }()
		synctest.Wait()
		if len(first)+len(second) != 0 {
			t.Error("an image was decoded though there is no memory left")
		}
		cancel()
		const noted = "[Image from s, not shown: it was not decoded: context canceled] Binary content (image/png, "
		if got := <-first; len(got) != 1 || !strings.HasPrefix(got[0].Text, noted) {
			t.Errorf("after the end of its context: %+v", got)
		}
		decoding.release(decodeMemory)
		if got := <-second; len(got) != 4 || got[0].Type != "image" || got[2].Type != "image" {
			t.Errorf("later: %d blocks", len(got))
		}
	})
}

// What decoding would take more memory for than there is is not decoded.
func TestImagesThatTakeTooMuchMemory(t *testing.T) {
	interlaced := pngHeader(6000, 6000, 16, 1)
	_, err := fitImage(t.Context(), interlaced, DefaultMaxImageBytes)
	if !errors.Is(err, errBrokenImage) { // it has no pixels at all
		t.Errorf("got %v", err)
	}
	info := imageInfo{width: 6000, height: 6000}
	if !info.pngHeader(interlaced[16:29]) || info.memory() <= decodeMemory {
		t.Errorf("36 million pixels of 16 bytes take %d bytes", info.memory())
	}
}

func pngHeader(w, h uint32, depth, interlace byte) []byte {
	body := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	body = append(body, depth, 6, 0, 0, interlace)
	chunk := append(append(binary.BigEndian.AppendUint32(nil, 13), "IHDR"...), body...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	end := binary.BigEndian.AppendUint32(append(make([]byte, 4), "IEND"...), crc32.ChecksumIEEE([]byte("IEND")))
	return slices.Concat([]byte(pngSignature), chunk, end)
}
