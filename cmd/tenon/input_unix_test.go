//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe that nobody writes to holds no command up once it is told to end, wherever it is named.
func TestPipesAreReadUntilTheEnd(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	config := serverConfig("calc")
	for _, args := range [][]string{
		{"mcp", "list", "--mcp-config", pipe},
		{"mcp", "call", "mcp__calc__add", "{}", "--mcp-config", pipe},
		{"mcp", "call", "calc", "add", "@" + pipe, "--mcp-config", config},
		{"mcp", "import", pipe},
		{"run", "--offline", "hi", "--settings", pipe},
		{"run", "--offline", "hi", "--json-schema", "@" + pipe},
	} {
		t.Run(strings.Join(args[:2], " ")+" "+args[len(args)-2], func(t *testing.T) {
			t.Chdir(t.TempDir())
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var out, errs bytes.Buffer
			done := make(chan int)
			p := &process{in: strings.NewReader(""), out: &out, err: &errs, environ: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}}
			go func() { done <- run(ctx, args, p) }()
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // opens when the command has opened it
			if err != nil {
				t.Fatal(err)
			}
			cancel(&signalError{syscall.SIGTERM})
			if code := <-done; code != 143 || !strings.Contains(errs.String(), "terminated") {
				t.Errorf("exit status %d, want 143: %s", code, &errs)
			}
			if err := writer.Close(); err != nil { // and the goroutine that reads it ends
				t.Error(err)
			}
		})
	}
}
