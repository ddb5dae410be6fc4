package mcpserver

import (
	"context"
	"errors"
)

// A Definition is a tool together with its handler, not yet on any server. [Define] and [DefineRaw]
// make one; it may be added to any number of servers, from any goroutine. The zero value cannot be added.
type Definition struct {
	name string
	add  func(*Server) error
}

// Define joins a tool with a handler whose arguments and results are Go values; see [AddTool] for both.
// What is wrong with them is reported when the definition is added to a server. Define takes a copy of t.
func Define[In, Out any](t *Tool, h func(ctx context.Context, in In) (Out, error)) Definition {
	t, name := copyOf(t)
	return Definition{name, func(s *Server) error { return AddTool(s, t, h) }}
}

// DefineRaw joins a tool with a handler of JSON; see [Server.AddTool].
func DefineRaw(t *Tool, h RawHandler) Definition {
	t, name := copyOf(t)
	return Definition{name, func(s *Server) error { return s.AddTool(t, h) }}
}

func copyOf(t *Tool) (*Tool, string) {
	if t == nil {
		return nil, ""
	}
	c := *t
	return &c, t.Name
}

// Name is the tool's name.
func (d Definition) Name() string { return d.name }

// AddTo adds the tool to a server. An error leaves it out, as with [AddTool].
func (d Definition) AddTo(s *Server) error {
	if d.add == nil {
		return s.rejectTool(nil, errors.New("the definition is empty: make it with Define or DefineRaw"))
	}
	return d.add(s)
}
