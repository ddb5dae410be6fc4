package main

import (
	"bufio"
	"cmp"
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
	return loginCommand(p, &cobra.Command{
		Use:   "login SERVER [flags]",
		Short: "Log in to a server over HTTP",
		Long:  loginLong,
	}, true, login)
}

func newLogoutCommand(p *process) *cobra.Command {
	return loginCommand(p, &cobra.Command{
		Use:   "logout SERVER [flags]",
		Short: "Forget the login to a server",
		Long:  `Revoke the tokens of a server, where its authorization server can do that, and delete them from this machine.`,
	}, false, logout)
}

// loginCommand adds to a command what finds a server over HTTP and runs do. If connects is set, the
// server must not be disabled, and the user is asked about an untrusted project.
func loginCommand(p *process, c *cobra.Command, connects bool, do func(context.Context, *process, mcpconfig.Entry) error) *cobra.Command {
	f := newServerFlags()
	f.register(c.Flags())
	c.Args = wantArgs(1, 1, "SERVER")
	c.ValidArgsFunction = f.complete(p)
	c.RunE = func(c *cobra.Command, args []string) error {
		l, err := f.load(c.Context(), p)
		if connects && err == nil {
			l, err = f.decided(c.Context(), p, projectStart{only: args})
		}
		if err != nil {
			return err
		}
		entry, ok := l.cfg.Servers[args[0]]
		switch {
		case !ok:
			return l.unknown(args[0])
		case entry.Kind == mcpconfig.Stdio:
			return usagef("server %q is a program; only servers over HTTP have logins", args[0])
		case connects && entry.DisabledReason != "":
			return fmt.Errorf("server %q is disabled: %s", entry.Name, entry.DisabledReason)
		}
		return do(c.Context(), p, entry)
	}
	return c
}

func logout(ctx context.Context, p *process, entry mcpconfig.Entry) error {
	store, err := mcpauth.UserStore(p.lookupEnv)
	if err != nil {
		return err
	}
	auth, err := entry.Authenticator(&mcpauth.Options{Store: store})
	if err != nil {
		return err
	}
	if _, err := auth.Credentials(ctx); errors.Is(err, mcpauth.ErrNotFound) {
		return fmt.Errorf("there is no login to %q", entry.Name)
	}
	if err := auth.Logout(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "logged out of %q\n", entry.Name)
	return err
}

func login(ctx context.Context, p *process, entry mcpconfig.Entry) error {
	cb, err := mcpauth.NewCallback(ctx, cmp.Or(entry.OAuth, &mcpconfig.OAuth{}).CallbackPort)
	if err != nil {
		return err
	}
	defer cb.Close() // it is bounded by itself
	show := func(_ context.Context, r *mcpauth.AuthorizationRequest) error {
		_, err := fmt.Fprintf(p.err, "Open this address in a browser to log in to %q:\n\n  %s\n\nIf the browser cannot come back here, paste the address that it ended at:\n", entry.Name, r.URL)
		return err
	}
	store, err := mcpauth.UserStore(p.lookupEnv)
	if err != nil {
		return err
	}
	// Find out whether the login can be stored before the user goes through it.
	err = store.Update(ctx, mcpauth.Key(entry.URL), func(old *mcpauth.Credentials) (*mcpauth.Credentials, error) { return old, nil })
	if _, ok := errors.AsType[*mcpauth.StoreError](err); ok {
		return fmt.Errorf("the login could not be kept: %w; mend that, or set XDG_CONFIG_HOME to a directory that can be written", err)
	} else if err != nil {
		return err
	}
	auth, err := entry.Authenticator(&mcpauth.Options{
		Store: store, Authorize: mcpauth.Interactive(cb, show, pasted(p)), RedirectURL: cb.URL(),
	})
	if err != nil {
		return err
	}
	if err := auth.Login(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "logged in to %q\n", entry.Name)
	return err
}

// pasted reads lines of standard input as answers.
func pasted(p *process) func(ctx context.Context, problem error) (string, error) {
	s := bufio.NewScanner(p.in)
	s.Buffer(nil, maxInput)
	return func(ctx context.Context, problem error) (string, error) {
		if problem != nil {
			fmt.Fprintf(p.err, "That is not it: %s. Once more:\n", oneLine(problem.Error()))
		}
		return await(ctx, func() (string, error) {
			if s.Scan() {
				return s.Text(), nil
			}
			if err := s.Err(); err != nil {
				fmt.Fprintf(p.err, "tenon: nothing more can be pasted: %v\n", err)
			}
			<-ctx.Done() // at the end of the input, the browser may still come
			return "", context.Cause(ctx)
		})
	}
}
