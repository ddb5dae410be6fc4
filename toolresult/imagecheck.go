package toolresult

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

var (
	errBrokenImage = errors.New("its data is broken")
	errAnimation   = errors.New("it is an animation")
)

// A budget is an amount that is shared.
type budget struct{ sem *semaphore.Weighted }

func newBudget(n int64) *budget { return &budget{semaphore.NewWeighted(n)} }

func (b *budget) acquire(ctx context.Context, n int64) error { return b.sem.Acquire(ctx, n) }
func (b *budget) release(n int64)                            { b.sem.Release(n) }

// An imageInfo describes an image without its pixels.
type imageInfo struct {
	mimeType      string
	data          []byte // without damaged ancillary chunks
	width, height int
	pixelBytes    int64 // the bytes that decoding needs for each pixel
}

// memory returns how many bytes decoding needs.
func (i *imageInfo) memory() int64 { return int64(i.width) * int64(i.height) * i.pixelBytes }

// checkImage reads an image's size and checks that it is complete, without decoding its pixels. The
// API refuses a request with an incomplete image, and every later one of the conversation.
func checkImage(data []byte) (imageInfo, error) {
	kind := http.DetectContentType(data)
	switch kind {
	case "image/png":
		return checkPNG(data)
	case "image/jpeg", "image/gif", "image/webp":
	default:
		return imageInfo{}, errors.New("its data is not PNG, JPEG, GIF or WebP")
	}
	cfg, _, err := image.DecodeConfig(bytes.NewReader(data))
	info := imageInfo{mimeType: kind, data: data, width: cfg.Width, height: cfg.Height}
	switch kind {
	case "image/jpeg":
		progressive, whole := walkJPEG(data)
		if err != nil || !whole {
			return info, errBrokenImage
		}
		info.pixelBytes = 4
		if progressive { // the decoder keeps its coefficients too
			info.pixelBytes = 16
		}
	case "image/gif":
		if err != nil || !wholeGIF(data) {
			return info, errBrokenImage
		}
		info.pixelBytes = 1
	case "image/webp":
		if animatedWebP(data) {
			return info, errAnimation
		}
		if err != nil || !wholeRIFF(data) {
			return info, errBrokenImage
		}
		info.pixelBytes = 8
	}
	return info, nil
}

// pngSignature is the beginning of a PNG.
const pngSignature = "\x89PNG\r\n\x1a\n"

// checkPNG checks the chunks of a PNG. A critical chunk with a wrong checksum makes the image unusable;
// an ancillary one is left out.
func checkPNG(data []byte) (imageInfo, error) {
	info := imageInfo{mimeType: "image/png", data: data}
	var header []byte
	var pixels []io.Reader
	var bad [][2]int // chunks to leave out
	for at := len(pngSignature); ; {
		if len(data)-at < 12 {
			return info, errBrokenImage
		}
		size := int64(binary.BigEndian.Uint32(data[at:]))
		if size > int64(len(data)-at-12) {
			return info, errBrokenImage
		}
		name, end := string(data[at+4:at+8]), at+12+int(size)
		body := data[at+8 : end-4]
		if crc32.ChecksumIEEE(data[at+4:end-4]) != binary.BigEndian.Uint32(data[end-4:]) {
			if ancillary := name[0]&0x20 != 0; !ancillary {
				return info, errBrokenImage
			}
			bad = append(bad, [2]int{at, end})
		}
		switch name {
		case "IHDR":
			header = body
		case "IDAT":
			pixels = append(pixels, bytes.NewReader(body))
		case "IEND":
			if !info.pngHeader(header) || !inflates(io.MultiReader(pixels...), info.leastPNG(header)) {
				return info, errBrokenImage
			}
			info.data = without(data, bad)
			return info, nil
		}
		at = end
	}
}

// pngHeader reads an IHDR chunk.
func (i *imageInfo) pngHeader(h []byte) bool {
	if len(h) != 13 {
		return false
	}
	w, t := binary.BigEndian.Uint32(h), binary.BigEndian.Uint32(h[4:])
	if w == 0 || t == 0 || w > 1<<24 || t > 1<<24 {
		return false
	}
	i.width, i.height, i.pixelBytes = int(w), int(t), 4
	if h[8] == 16 {
		i.pixelBytes = 8
	}
	if h[12] != 0 { // each pass of an interlaced image is decoded by itself
		i.pixelBytes *= 2
	}
	return true
}

// leastPNG returns the least size of the decompressed pixels of a PNG with this header.
func (i *imageInfo) leastPNG(h []byte) int64 {
	samples := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[h[9]] // by colour type
	return int64(i.height) * (int64(i.width)*samples*int64(h[8]) + 7) / 8
}

// inflates reports whether a zlib stream is complete and has at least the given size. It reads at most
// about twice as much.
func inflates(r io.Reader, least int64) bool {
	z, err := zlib.NewReader(r)
	if err != nil {
		return false
	}
	n, err := io.Copy(io.Discard, io.LimitReader(z, 2*least+1024))
	return n >= least && (err == nil || n > least)
}

// without returns data without some ranges.
func without(data []byte, cut [][2]int) []byte {
	if len(cut) == 0 {
		return data
	}
	var out []byte
	from := 0
	for _, c := range cut {
		out = append(out, data[from:c[0]]...)
		from = c[1]
	}
	return append(out, data[from:]...)
}

// walkJPEG looks for the end marker of a JPEG and ignores what follows it.
func walkJPEG(data []byte) (progressive, whole bool) {
	for at := 2; at+1 < len(data); {
		if data[at] != 0xFF { // pixels
			next := bytes.IndexByte(data[at:], 0xFF)
			if next < 0 {
				return progressive, false
			}
			at += next
			continue
		}
		switch m := data[at+1]; {
		case m == 0xD9:
			return progressive, true
		case m == 0xFF: // padding
			at++
		case m == 0 || m == 1 || m >= 0xD0 && m <= 0xD8: // no length follows
			at += 2
		default:
			progressive = progressive || m == 0xC2
			if at+4 > len(data) {
				return progressive, false
			}
			at += 2 + max(2, int(binary.BigEndian.Uint16(data[at+2:])))
		}
	}
	return progressive, false
}

// wholeGIF reports whether the blocks of a GIF lead to its trailer.
func wholeGIF(data []byte) bool {
	colours := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	if len(data) < 13 {
		return false
	}
	images := 0
	for at := 13 + colours(data[10]); at < len(data); {
		switch data[at] {
		case 0x3B:
			return images > 0
		case 0x2C:
			if at+11 > len(data) {
				return false
			}
			images++
			at += 11 + colours(data[at+9])
		case 0x21:
			at += 2
		default:
			return false
		}
		for at < len(data) && data[at] != 0 { // sub-blocks
			at += 1 + int(data[at])
		}
		at++
	}
	return false
}

// wholeRIFF reports whether a WebP is as long as its header says.
func wholeRIFF(data []byte) bool {
	return len(data) >= 12 && int64(binary.LittleEndian.Uint32(data[4:]))+8 <= int64(len(data))
}

func animatedWebP(data []byte) bool {
	return bytes.Contains(data[:min(len(data), 128)], []byte("ANIM"))
}
