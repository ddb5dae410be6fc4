package callback

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/internal/lograte"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	var log bytes.Buffer
	limited := lograte.New(slog.New(slog.NewTextHandler(&log, nil)))
	if err := Run(limited, "F", func() error { return context.Canceled }); err != context.Canceled { //nolint:errorlint // the very error
		t.Errorf("got %v", err)
	}
	err := Run(limited, "F", func() error { panic("oh no") })
	if !errors.Is(err, ErrPanicked) || !strings.Contains(log.String(), "oh no") {
		t.Errorf("got %v, logged %s", err, log.String())
	}
}

func TestDetachedReturnsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	cancel()
	_, err := Detached(ctx, lograte.New(slog.New(slog.DiscardHandler)), "F", func() (int, error) { <-release; return 1, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWait(t *testing.T) {
	var wg sync.WaitGroup
	release := make(chan struct{})
	wg.Go(func() { <-release })
	if Wait(&wg) == nil {
		t.Error("no error though a goroutine goes on")
	}
	close(release)
	if err := Wait(&wg); err != nil {
		t.Error(err)
	}
}
