package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcpconfig"
)

const loginLong = `Log in to a server over HTTP that wants a login (OAuth). The address to open in a browser is printed; the login is
done when the browser comes back to this machine. Where it cannot, because the browser runs on another machine,
paste the address that it ended at.

The tokens are kept in files that only you can read, in tenon/credentials below your configuration directory, and
are refreshed as needed. 'tenon run' and 'tenon mcp' use them for entries that have no Authorization header.`

func newLoginCommand(p *process) *cobra.Command {
	f := new(serverFlags)
	c := &cobra.Command{
		Use:   "login SERVER [flags]",
		Short: "Log in to a server over HTTP",
		Long:  loginLong,
		Args:  wantArgs(1, 1, "SERVER"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, problems, err := f.decided(c.Context(), p, startNamed(args))
			if err != nil {
				return err
			}
			entry, err := remote(cfg, problems, args[0])
			switch {
			case err != nil:
				return err
			case entry.DisabledReason != "":
				return fmt.Errorf("server %q is disabled: %s", entry.Name, entry.DisabledReason)
			}
			return login(c.Context(), p, entry)
		},
	}
	f.register(c.Flags())
	c.ValidArgsFunction = f.complete(p)
	return c
}

func newLogoutCommand(p *process) *cobra.Command {
	f := new(serverFlags)
	c := &cobra.Command{
		Use:   "logout SERVER [flags]",
		Short: "Forget the login to a server",
		Long:  `Revoke the tokens of a server, where its authorization server can do that, and delete them from this machine.`,
		Args:  wantArgs(1, 1, "SERVER"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, problems, err := f.load(c.Context(), p)
			if err != nil {
				return err
			}
			entry, err := remote(cfg, problems, args[0])
			if err != nil {
				return err
			}
			auth, err := authenticator(p, entry, nil, "")
			if err != nil {
				return err
			}
			if _, err := auth.Credentials(c.Context()); errors.Is(err, mcpauth.ErrNotFound) {
				return fmt.Errorf("there is no login to %q", entry.Name)
			}
			if err := auth.Logout(c.Context()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.out, "logged out of %q\n", entry.Name)
			return err
		},
	}
	f.register(c.Flags())
	c.ValidArgsFunction = f.complete(p)
	return c
}

// remote is the entry of a server over HTTP.
func remote(cfg *mcpconfig.Config, problems []mcpconfig.Problem, name string) (mcpconfig.Entry, error) {
	entry, ok := cfg.Servers[name]
	if !ok {
		configs, _ := cfg.ServerConfigs() // for their names only
		return mcpconfig.Entry{}, (&servers{configs: configs, problems: problems}).unknown(name)
	}
	if entry.Kind == mcpconfig.Stdio {
		return mcpconfig.Entry{}, usagef("server %q is a program; only servers over HTTP have logins", name)
	}
	return entry, nil
}

func login(ctx context.Context, p *process, entry mcpconfig.Entry) error {
	port := 0
	if entry.OAuth != nil {
		port = entry.OAuth.CallbackPort
	}
	cb, err := mcpauth.NewCallback(ctx, port)
	if err != nil {
		return err
	}
	defer cb.Close() //nolint:contextcheck // it is bounded by itself
	show := func(_ context.Context, r *mcpauth.AuthorizationRequest) error {
		_, err := fmt.Fprintf(p.err, "Open this address in a browser to log in to %q:\n\n  %s\n\nIf the browser cannot come back here, paste the address that it ended at:\n", entry.Name, r.URL)
		return err
	}
	store, err := mcpauth.UserStore(p.lookupEnv)
	if err != nil {
		return err
	}
	// Before the person goes through all that, it is tried whether the login can be kept.
	err = store.Update(ctx, mcpauth.Key(entry.URL), func(old *mcpauth.Credentials) (*mcpauth.Credentials, error) { return old, nil })
	if errors.As(err, new(*mcpauth.StoreError)) {
		return fmt.Errorf("the login could not be kept: %w; mend that, or set XDG_CONFIG_HOME to a directory that can be written", err)
	} else if err != nil {
		return err
	}
	auth, err := authenticator(p, entry, mcpauth.Interactive(cb, show, pasted(p)), cb.URL())
	if err != nil {
		return err
	}
	if err := auth.Login(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "logged in to %q\n", entry.Name)
	return err
}

// pasted reads lines from standard input as answers. One goroutine stays behind in a read until the process
// ends; see readInput.
func pasted(p *process) func(ctx context.Context, problem error) (string, error) {
	lines := make(chan string)
	started := false
	return func(ctx context.Context, problem error) (string, error) {
		if problem != nil {
			fmt.Fprintf(p.err, "That is not it: %s. Once more:\n", oneLine(problem.Error()))
		}
		if !started {
			started = true
			go func() {
				s := bufio.NewScanner(p.in)
				s.Buffer(nil, maxInput)
				for s.Scan() {
					lines <- s.Text()
				}
				if err := s.Err(); err != nil {
					fmt.Fprintf(p.err, "tenon: nothing more can be pasted: %v\n", err)
				}
			}()
		}
		select {
		case line := <-lines:
			return line, nil
		case <-ctx.Done(): // also when the input is at its end: the browser may still come
			return "", context.Cause(ctx)
		}
	}
}

// authenticator is the login of a server as the entry wants it. Without authorize nobody is asked.
func authenticator(p *process, entry mcpconfig.Entry, authorize mcpauth.AuthorizeFunc, redirect string) (*mcpauth.Authenticator, error) {
	store, err := mcpauth.UserStore(p.lookupEnv)
	if err != nil {
		return nil, err
	}
	return entry.Authenticator(&mcpauth.Options{Store: store, Authorize: authorize, RedirectURL: redirect})
}
