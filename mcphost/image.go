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
	// maxImageSide is the longest side, in pixels, of an image that is passed on
	// as it is. The Messages API takes 8000, but 2000 only when a request has more
	// than 20 images, and whoever converts a result does not know the request.
	maxImageSide = 2000
	// scaledSide is the longest side of an image that was scaled down: more is
	// scaled down on the other side anyway.
	scaledSide = 1568
	// maxPixels bounds the memory that decoding may take.
	maxPixels = 40 << 20
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
	switch {
	case cfg.Width <= 0 || cfg.Height <= 0:
		return fittedImage{}, errors.New("it has no pixels")
	case cfg.Width > maxPixels/cfg.Height:
		return fittedImage{}, fmt.Errorf("%d by %d pixels are too many", cfg.Width, cfg.Height)
	}
	fits := base64Len(data) <= limit && cfg.Width <= maxImageSide && cfg.Height <= maxImageSide
	// Decoded even if it fits: one that ends too early would cost the whole
	// request, and every later one that has it in its history.
	src, _, err := image.Decode(bytes.NewReader(data))
	switch {
	case err == nil && fits, fits && unsupported(err):
		return fittedImage{mimeType: kind, data: data}, nil
	case unsupported(err):
		return fittedImage{}, fmt.Errorf("it cannot be scaled down: %w", err)
	case err != nil && kind == "image/webp" && bytes.Contains(data[:min(len(data), 128)], []byte("ANIM")):
		return fittedImage{}, errors.New("it is an animation")
	case err != nil:
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

// unsupported reports an image that is fine as far as can be told, in a form
// that Go does not decode.
func unsupported(err error) bool {
	var j jpeg.UnsupportedError
	var p png.UnsupportedError
	return errors.As(err, &j) || errors.As(err, &p)
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
