package mcpauth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tenon-sdk/tenon/mcpauth"
)

func visit(t *testing.T, address string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// Pain 21: the whole way: a listener, the address shown at once, a browser that comes back. // D62
func TestLoginThroughTheCallback(t *testing.T) {
	f := newFake(t)
	cb, err := mcpauth.NewCallback(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cb.Close()
	var browser sync.WaitGroup
	show := func(_ context.Context, req *mcpauth.AuthorizationRequest) error {
		back := make(chan struct{})
		defer func() { <-back }() // the browser is back before anybody waits for it
		browser.Go(func() {
			defer close(back)
			u, _ := url.Parse(cb.URL())
			u.RawQuery = "code=forged&state=wrong"
			if status, _ := visit(t, u.String()); status != http.StatusBadRequest {
				t.Errorf("a forged answer got %d, want 400", status)
			}
			if status, body := visit(t, req.URL); status != http.StatusOK || !strings.Contains(body, "logged in") {
				t.Errorf("the person's last page: %d %q", status, body)
			}
		})
		return nil
	}
	defer browser.Wait()
	_, c := f.client(&mcpauth.Options{Authorize: mcpauth.Interactive(cb, show, nil), RedirectURL: cb.URL()})
	mustGet(t, f, c)
}

func TestLoginByPaste(t *testing.T) {
	f := newFake(t)
	var shown string
	var problems []error
	show := func(_ context.Context, req *mcpauth.AuthorizationRequest) error { shown = req.URL; return nil }
	noFollow := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	paste := func(ctx context.Context, problem error) (string, error) {
		problems = append(problems, problem)
		if problem == nil {
			return "what do I paste?", nil
		}
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, shown, nil)
		resp, err := noFollow.Do(req)
		if err != nil {
			return "", err
		}
		resp.Body.Close()
		return "  " + resp.Header.Get("Location") + "\n", nil
	}
	_, c := f.client(&mcpauth.Options{Authorize: mcpauth.Interactive(nil, show, paste), RedirectURL: "http://localhost:1/callback"})
	mustGet(t, f, c)
	if len(problems) != 2 || problems[1] == nil || !strings.Contains(problems[1].Error(), "code=") {
		t.Errorf("problems told: %v", problems)
	}
}

func TestLoginEndsWithItsContext(t *testing.T) {
	f := newFake(t)
	cb, err := mcpauth.NewCallback(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cb.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the person went away")
	show := func(context.Context, *mcpauth.AuthorizationRequest) error { cancel(gone); return nil }
	a, _ := f.client(&mcpauth.Options{Authorize: mcpauth.Interactive(cb, show, nil), RedirectURL: cb.URL()})
	if err := a.Login(ctx); !errors.Is(err, gone) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestParseRedirect(t *testing.T) {
	tests := []struct{ pasted, want, wrong string }{
		{"http://localhost:3118/callback?code=abc&state=S&iss=i", "abc", ""},
		{"?code=abc&state=S", "abc", ""},
		{"code=abc&state=S", "abc", ""},
		{"abc#S", "abc", ""},
		{"abc", "", "paste all of it"},
		{"", "", "nothing"},
		{"http://localhost/callback?code=abc&state=T", "", "state"},
		{"http://localhost/callback?error=access_denied&error_description=no&state=S", "", "access_denied (no)"},
		{"http://localhost/callback?state=S", "", "no code"},
	}
	for _, tt := range tests {
		got, err := mcpauth.ParseRedirect(tt.pasted, "S")
		switch {
		case tt.wrong == "" && (err != nil || got.Code != tt.want):
			t.Errorf("%q: got %v, %v", tt.pasted, got, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%q: got error %v, want %q in it", tt.pasted, err, tt.wrong)
		}
	}
}

func TestCallbackPagesEscape(t *testing.T) {
	cb, err := mcpauth.NewCallback(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cb.Close()
	cb.Expect("S")
	_, body := visit(t, cb.URL()+"?state=S&error=%3Cscript%3E&error_description=%3Cb%3E")
	if strings.Contains(body, "<script>") || strings.Contains(body, "<b>") {
		t.Errorf("page %q", body)
	}
	var refused *mcpauth.RefusedError
	if _, err := cb.Wait(t.Context(), "S"); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}
