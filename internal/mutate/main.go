// Command mutate makes small changes to packages and runs their tests against
// each, to find changes of behaviour that no test notices:
//
//	mutate -seed 7 -n 12 ./toolschema ./permission
//
// It chooses the places by the seed, so that a run can be repeated, and prints
// one line for each: killed, where a test failed or ran into the time limit, or
// survived. Changes that do not compile are passed over. The files stay as they
// are: the go command sees each change through -overlay.
//
// A survivor is a question: some changes alter nothing that matters.
// go-gremlins, the mutation tester that can be had as a module, tries every
// place, removes no statements and copies the module for each run.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/build"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() { os.Exit(mainCode()) }

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // main has no caller
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	seed := flags.Uint64("seed", 1, "what the places are chosen by")
	n := flags.Int("n", 12, "how many changes to try in each package; 0 tries all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.Dir}}"}, flags.Args()...)...)
	list.Stderr = os.Stderr
	dirs, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	temp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for dir := range strings.Lines(string(dirs)) {
		t := &target{dir: strings.TrimSpace(dir), temp: temp, out: out}
		if err := t.mutate(ctx, *seed, *n); err != nil {
			return fmt.Errorf("%s: %w", t.dir, err)
		}
	}
	return nil
}

// A target is a package whose tests are tried.
type target struct {
	dir   string
	temp  string
	out   io.Writer
	limit time.Duration // how long its tests may take
}

func (t *target) mutate(ctx context.Context, seed uint64, n int) error {
	pkg, err := build.ImportDir(t.dir, 0)
	if err != nil {
		return err
	}
	var all []place
	for _, name := range pkg.GoFiles {
		path := filepath.Join(t.dir, name)
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := places(path, src)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if len(pkg.TestGoFiles)+len(pkg.XTestGoFiles) == 0 || len(all) == 0 {
		fmt.Fprintf(t.out, "%s: nothing to try\n", pkg.Name)
		return nil
	}
	start := time.Now()
	if text, err := t.test(ctx, time.Hour); err != nil {
		return fmt.Errorf("the tests fail without a change: %w\n%s", err, text)
	}
	t.limit = 5*time.Since(start) + 20*time.Second
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if n == 0 {
		n = len(all)
	}
	tried, killed := 0, 0
	for _, p := range all {
		if tried == n {
			break
		}
		verdict, err := t.try(ctx, p)
		if err != nil {
			return err
		}
		if verdict == "" {
			continue
		}
		tried++
		if verdict != "survived" {
			killed++
		}
		fmt.Fprintf(t.out, "%-8s %s\n", verdict, p)
	}
	fmt.Fprintf(t.out, "%s: %d of %d killed, of %d places, seed %d\n", pkg.Name, killed, tried, len(all), seed)
	return nil
}

// try returns the verdict on a change, empty if it does not compile.
func (t *target) try(ctx context.Context, p place) (string, error) {
	src, err := os.ReadFile(p.path)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(t.temp, "changed.go"), filepath.Join(t.temp, "overlay.json")
	data, err := json.Marshal(map[string]map[string]string{"Replace": {p.path: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, p.apply(src), 0o600), os.WriteFile(overlay, data, 0o600)); err != nil {
		return "", err
	}
	if _, err := t.command(ctx, "build", "-overlay", overlay, "-o", os.DevNull, "."); err != nil {
		return "", ctx.Err()
	}
	text, err := t.test(ctx, t.limit, "-overlay", overlay)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "survived", nil
	case bytes.Contains(text, []byte("panic: test timed out")) || errors.Is(err, context.DeadlineExceeded):
		return "hung", nil
	}
	return "killed", nil
}

// test runs the package's tests.
func (t *target) test(ctx context.Context, limit time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute) // the go command ends them before
	defer cancel()
	args = append([]string{"test", "-vet=off", "-count=1", "-failfast", "-timeout", limit.String()}, args...)
	text, err := t.command(ctx, append(args, ".")...)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return text, err
}

func (t *target) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.dir
	cmd.WaitDelay = 10 * time.Second // children of a test that hangs keep the pipe open
	return cmd.CombinedOutput()
}
