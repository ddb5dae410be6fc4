package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/internal/file"
)

// maxInput bounds what is read of a file or of standard input, in bytes.
const maxInput = 64 << 20

// stdinWait is how long a run with a prompt on the command line waits for the first text on standard
// input. Programs often start others with an input that they neither write to nor close.
const stdinWait = 3 * time.Second

// readNamed reads a file that the user names, which may be a pipe or a device, until ctx ends.
func readNamed(ctx context.Context, name string) ([]byte, error) {
	return await(ctx, func() ([]byte, error) { return file.Read(name, maxInput) })
}

// readInput reads standard input to its end, or until ctx ends.
func readInput(ctx context.Context, r io.Reader) ([]byte, error) {
	return await(ctx, func() ([]byte, error) {
		data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
		if err == nil && len(data) > maxInput {
			err = fmt.Errorf("standard input: it has more than the %d bytes that are read", maxInput)
		}
		return data, err
	})
}

// errNoInput is the cause of a wait for standard input that was too long.
var errNoInput = errors.New("nothing came on standard input")

// readPiped is readInput for an input that may never come: errNoInput if nothing comes in time.
func readPiped(ctx context.Context, r io.Reader) ([]byte, error) {
	b := bufio.NewReader(r)
	bounded, cancel := context.WithTimeoutCause(ctx, stdinWait, errNoInput)
	defer cancel()
	if _, err := await(bounded, func() ([]byte, error) { return b.Peek(1) }); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return readInput(ctx, b)
}

// readPrompt joins the prompt of the argument and of standard input.
func readPrompt(ctx context.Context, p *process, args []string) (string, error) {
	if len(args) > 1 {
		return "", usagef("one PROMPT wanted, got %s; quote the prompt", count(len(args), "argument"))
	}
	prompt := strings.Join(args, "")
	var (
		text []byte
		err  error
	)
	switch _, interactive := terminal(p.in); {
	case prompt == "" && interactive:
		return "", usagef("no prompt given; try: tenon run \"What can you do?\"")
	case prompt == "" || prompt == "-":
		prompt = ""
		text, err = readInput(ctx, p.in)
	case piped(p.in):
		text, err = readPiped(ctx, p.in)
		if errors.Is(err, errNoInput) {
			fmt.Fprintf(p.err, "tenon: nothing came on standard input within %v; going on without it (</dev/null avoids the wait)\n", stdinWait)
			err = nil
		}
	}
	if err != nil {
		return "", err
	}
	prompt = strings.TrimSpace(prompt + "\n\n" + string(text))
	if !utf8.ValidString(prompt) {
		fmt.Fprintln(p.err, "tenon: the prompt is not valid UTF-8; what is not is replaced by \uFFFD")
		prompt = strings.ToValidUTF8(prompt, "\uFFFD")
	}
	if prompt == "" {
		return "", usagef("the prompt is empty; try: tenon run \"What can you do?\"")
	}
	return prompt, nil
}

// piped reports whether a reader is a file or a pipe. A terminal and the null device are neither.
func piped(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}
