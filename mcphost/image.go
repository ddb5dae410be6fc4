package mcphost

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // to be decoded
	"image/jpeg"
	"image/png"
	"net/http"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // to be decoded
)

const (
	// maxImageSide is the longest side, in pixels, that the Messages API takes.
	maxImageSide = 8000
	// scaledSide is the longest side of an image that was scaled down: more is
	// scaled down on the other side anyway.
	scaledSide = 1568
	// maxPixels bounds the memory that decoding may take.
	maxPixels = 64 << 20
)

// readable are the image types that models read.
var readable = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// A fittedImage is an image that a model can be sent.
type fittedImage struct {
	mimeType string
	data     []byte
	note     string // what was done to it
}

// fitImage checks an image and scales it down if it is too large. Its type is
// what its bytes say, not what the server does.
func fitImage(data []byte, limit int) (fittedImage, error) {
	kind := http.DetectContentType(data)
	if !readable[kind] {
		return fittedImage{}, errors.New("its data is not PNG, JPEG, GIF or WebP")
	}
	cfg, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return fittedImage{}, errors.New("its data is broken")
	}
	if base64Len(data) <= limit && cfg.Width <= maxImageSide && cfg.Height <= maxImageSide {
		return fittedImage{mimeType: kind, data: data}, nil
	}
	if cfg.Width*cfg.Height > maxPixels {
		return fittedImage{}, fmt.Errorf("%d by %d pixels are too many", cfg.Width, cfg.Height)
	}
	src, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return fittedImage{}, errors.New("its data is broken")
	}
	for side := scaledSide; side >= 64; side /= 2 {
		small, kind, err := scaled(src, side)
		if err != nil {
			return fittedImage{}, err
		}
		if base64Len(small) <= limit {
			note := fmt.Sprintf("Image scaled down from %d by %d pixels, %d bytes", cfg.Width, cfg.Height, len(data))
			return fittedImage{mimeType: kind, data: small, note: note}, nil
		}
	}
	return fittedImage{}, fmt.Errorf("%d bytes are too many", len(data))
}

// scaled encodes an image with no side above a limit: as PNG if that is small,
// as JPEG otherwise.
func scaled(src image.Image, side int) ([]byte, string, error) {
	w, h := src.Bounds().Dx(), src.Bounds().Dy()
	if long := max(w, h); long > side {
		w, h = max(1, w*side/long), max(1, h*side/long)
	}
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.ApproxBiLinear.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
	var buf bytes.Buffer
	if err := png.Encode(&buf, dst); err != nil {
		return nil, "", fmt.Errorf("encoding: %w", err)
	}
	const pngLimit = 1 << 20
	if buf.Len() <= pngLimit {
		return buf.Bytes(), "image/png", nil
	}
	buf.Reset()
	if err := jpeg.Encode(&buf, dst, &jpeg.Options{Quality: 85}); err != nil {
		return nil, "", fmt.Errorf("encoding: %w", err)
	}
	return buf.Bytes(), "image/jpeg", nil
}
