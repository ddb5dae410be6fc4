package toolresult

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // to be decoded
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // to be decoded
)

const (
	// maxImageSide is the longest side of an image that is not scaled down, in pixels. The Messages API
	// accepts 8000, and 2000 if a request has more than 20 images.
	maxImageSide = 2000
	// scaledSide is the longest side of an image that is scaled down. The API scales larger ones down.
	scaledSide = 1568
	maxPixels  = 40 << 20
	// decodeMemory limits the memory of all decoding in this process, in bytes of pixels.
	decodeMemory = 256 << 20
)

// decoding is the part of decodeMemory that is free.
var decoding = newBudget(decodeMemory)

// readable are the image types that models can read.
var readable = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// A fittedImage is an image within the limits.
type fittedImage struct {
	mimeType string
	data     []byte
	note     string // what was done to it
}

// fitImage checks an image and scales it down if it is too large. It determines the type from the
// data. ctx ends waiting for memory.
func fitImage(ctx context.Context, data []byte, limit int) (fittedImage, error) {
	info, err := checkImage(data)
	if err != nil {
		return fittedImage{}, err
	}
	data = info.data
	switch {
	case info.width <= 0 || info.height <= 0:
		return fittedImage{}, errors.New("it has no pixels")
	case info.width > maxPixels/info.height:
		return fittedImage{}, fmt.Errorf("%d by %d pixels are too many", info.width, info.height)
	case base64Len(data) <= limit && info.width <= maxImageSide && info.height <= maxImageSide:
		return fittedImage{mimeType: info.mimeType, data: data}, nil
	case info.memory() > decodeMemory:
		return fittedImage{}, fmt.Errorf("decoding %d by %d pixels in this form takes too much memory", info.width, info.height)
	}
	if err := decoding.acquire(ctx, info.memory()); err != nil {
		return fittedImage{}, fmt.Errorf("it was not decoded: %w", err)
	}
	defer decoding.release(info.memory())
	return scaleDown(ctx, info, limit)
}

// scaleDown decodes an image and encodes it smaller until it fits.
func scaleDown(ctx context.Context, info imageInfo, limit int) (fittedImage, error) {
	src, _, err := image.Decode(bytes.NewReader(info.data))
	switch {
	case unsupported(err):
		return fittedImage{}, fmt.Errorf("it cannot be scaled down: %w", err)
	case err != nil:
		return fittedImage{}, errBrokenImage
	}
	for side := scaledSide; side >= 64 && ctx.Err() == nil; side /= 2 {
		small, kind, err := scaled(src, side)
		if err != nil {
			return fittedImage{}, err
		}
		if base64Len(small) <= limit {
			note := fmt.Sprintf("Image scaled down from %d by %d pixels, %d bytes", info.width, info.height, len(info.data))
			return fittedImage{mimeType: kind, data: small, note: note}, nil
		}
	}
	return fittedImage{}, fmt.Errorf("%d bytes are too many", len(info.data))
}

// unsupported reports an error for an image in a form that Go does not decode.
func unsupported(err error) bool {
	var j jpeg.UnsupportedError
	var p png.UnsupportedError
	return errors.As(err, &j) || errors.As(err, &p)
}

// scaled scales an image to the given longest side and encodes it as PNG if that is small, otherwise
// as JPEG.
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
