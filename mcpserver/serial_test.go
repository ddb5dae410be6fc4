package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func addSerial(t *testing.T, s *Server, name string, limit time.Duration, h RawHandler) {
	t.Helper()
	if err := s.AddTool(&Tool{Name: name, Concurrency: Serial, Timeout: limit}, h); err != nil {
		t.Fatal(err)
	}
}

func TestSerialToolsRunOneAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		defer s.Close()
		var running atomic.Int32
		var order []string // written by one at a time, or the race detector tells
		work := func(name string) RawHandler {
			return func(ctx context.Context, _ json.RawMessage) (*Result, error) {
				if running.Add(1) != 1 {
					t.Error("two serial calls ran at once")
				}
				defer running.Add(-1)
				time.Sleep(time.Second)
				order = append(order, name+RequestFrom(ctx).RequestID)
				return Text(""), nil
			}
		}
		addSerial(t, s, "a", 0, work("a"))
		addSerial(t, s, "b", 0, work("b"))
		var want []string
		for i := range 40 { // longer than a call's limit in all
			ss := s.NewSession(nil)
			defer ss.Close()
			name := []string{"a", "b"}[i%2]
			want = append(want, name+fmt.Sprint(i))
			go func() {
				r, err := ss.CallTool(t.Context(), Call{Name: name, RequestID: fmt.Sprint(i)})
				if err != nil || r.IsError {
					t.Errorf("call %d: %+v, %v", i, r, err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if strings.Join(order, " ") != strings.Join(want, " ") {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// Calls of other tools do not wait for serial ones, nor for each other.
func TestOthersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		defer s.Close()
		sleep := func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			time.Sleep(time.Second)
			return Text(""), nil
		}
		addSerial(t, s, "serial", 0, sleep)
		addRaw(t, s, "plain", sleep)
		start := time.Now()
		done := make(chan struct{})
		for i := range 21 {
			name := "plain"
			if i == 0 {
				name = "serial"
			}
			go func() {
				callText(t, s, name, ``)
				done <- struct{}{}
			}()
		}
		for range 21 {
			<-done
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("21 calls of a second took %v", took)
		}
	})
}

func TestASerialHandlerMayCallItsOwnServer(t *testing.T) {
	s := newTestServer(t, nil)
	addSerial(t, s, "inner", 0, returns(Text("inner"), nil))
	addSerial(t, s, "outer", 0, func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		return s.CallTool(ctx, "inner", nil)
	})
	wantText(t, s, "outer", ``, "inner", false)
	wantText(t, s, "inner", ``, "inner", false)
}

func TestNobodyWaitsForEverBehindADeafSerialHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		defer s.Close()
		release := make(chan struct{})
		addSerial(t, s, "deaf", 10*time.Second, func(context.Context, json.RawMessage) (*Result, error) {
			<-release
			return Text("late"), nil
		})
		addSerial(t, s, "next", 5*time.Second, returns(Text("next"), nil))
		start := time.Now()
		type end struct {
			text string
			took time.Duration
		}
		ends := make(chan end, 3)
		call := func(ctx context.Context, name string) {
			r, err := s.CallTool(ctx, name, nil)
			if err != nil {
				r = Errorf("%v", err)
			}
			ends <- end{r.Text(), time.Since(start)}
		}
		go call(t.Context(), "deaf")
		synctest.Wait()
		go call(t.Context(), "next")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		go call(ctx, "next")
		if e := <-ends; e.took != 2*time.Second || !strings.Contains(e.text, "deadline exceeded") {
			t.Errorf("the caller that gave up: %+v", e)
		}
		if e := <-ends; e.took != 10*time.Second || !strings.Contains(e.text, "timed out after 10 seconds") {
			t.Errorf("the deaf one: %+v", e)
		}
		if e := <-ends; e.took != 15*time.Second || !strings.Contains(e.text, "did not run") {
			t.Errorf("the one behind it: %+v", e)
		}
		go call(t.Context(), "next") // comes when the slot is overdue already
		synctest.Wait()
		close(release) // it ends after all: the next one runs
		if e := <-ends; e.text != "next" {
			t.Errorf("after the end: %+v", e)
		}
		wantText(t, s, "next", ``, "next", false)
	})
}

func TestClosingWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		addSerial(t, s, "slow", 0, func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := s.CallTool(t.Context(), "slow", nil)
				errs <- err
			}()
		}
		synctest.Wait()
		_ = s.Close()
		for range 2 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
		}
	})
}
