package memhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A stream comes line by line, on the fake clock, and ends with the request; a request that is broken off fails.
func TestTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if string(body) == "abort" {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("X-Echo", string(body))
			w.WriteHeader(http.StatusAccepted)
			for r.Context().Err() == nil {
				fmt.Fprintln(w, "tick")
				select {
				case <-time.After(time.Minute):
				case <-r.Context().Done():
				}
			}
		})}
		defer tr.Wait()
		c := &http.Client{Transport: tr}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		post := func(ctx context.Context, body string) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server.test/", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			return c.Do(req)
		}
		resp, err := post(ctx, "hello")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted || resp.Header.Get("X-Echo") != "hello" {
			t.Errorf("%d %v", resp.StatusCode, resp.Header)
		}
		began, lines := time.Now(), bufio.NewScanner(resp.Body)
		for range 3 {
			if !lines.Scan() || lines.Text() != "tick" {
				t.Fatalf("%q, %v", lines.Text(), lines.Err())
			}
		}
		if d := time.Since(began); d != 2*time.Minute {
			t.Errorf("it took %v", d)
		}
		if resp, err := post(ctx, "abort"); !errors.Is(err, io.ErrUnexpectedEOF) {
			if err == nil {
				resp.Body.Close()
			}
			t.Errorf("broken off: %v", err)
		}
		cancel()
		if resp, err := post(ctx, "late"); !errors.Is(err, context.Canceled) {
			if err == nil {
				resp.Body.Close()
			}
			t.Errorf("late: %v", err)
		}
	})
}
