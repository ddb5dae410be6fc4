package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxInput is the most that is read of a file or of standard input: what a command takes fits well into it.
const maxInput = 64 << 20

// errTooMuch reports input above that.
var errTooMuch = fmt.Errorf("it has more than the %d bytes that are read", maxInput)

// readNamed reads a file that the user names, which may be a pipe or a device, until ctx ends.
func readNamed(ctx context.Context, name string) ([]byte, error) {
	return readInput(ctx, &lateFile{name: name}, 0)
}

// errNoInput reports that nothing came in time.
var errNoInput = errors.New("nothing came on standard input")

// readInput reads r to its end, or until ctx ends. With a wait above zero, it returns errNoInput when neither
// a first byte nor the end has come by then.
//
// When it returns early, one goroutine stays behind in the read until the process ends, which is what the
// command is about to do or does without the input: a read of a terminal or a pipe cannot be called off.
func readInput(ctx context.Context, r io.Reader, wait time.Duration) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	first := make(chan struct{})
	done := make(chan result, 1) // the goroutine never blocks on it
	go func() {
		var b bytes.Buffer
		_, err := io.CopyN(&b, r, 1)
		close(first)
		if err == nil {
			_, err = io.CopyN(&b, r, maxInput)
			if err == nil {
				err = errTooMuch
				if _, named := r.(*lateFile); !named {
					err = fmt.Errorf("standard input: %w", err)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		done <- result{b.Bytes(), err}
	}()
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-first:
		case <-t.C:
			return nil, errNoInput
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case res := <-done:
		return res.data, res.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readRegular reads a file that nobody has named: what is no regular file, a pipe say, is not waited for.
func readRegular(name string) ([]byte, error) {
	switch info, err := os.Stat(name); {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	if err == nil && len(data) > maxInput {
		return nil, errTooMuch
	}
	return data, err
}

// A lateFile opens a file at its first read: for a pipe that alone can take for ever.
type lateFile struct {
	name string
	file *os.File
}

func (l *lateFile) Read(b []byte) (int, error) {
	if l.file == nil {
		var err error
		if l.file, err = os.Open(l.name); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Read(b)
	if err != nil {
		_ = l.file.Close()
	}
	return n, err
}
