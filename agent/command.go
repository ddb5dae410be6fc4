package agent

import (
	"context"
	"errors"
	"fmt"
)

// A Command is something that can be said to a session in the place of a prompt: "/NAME arguments".
// The prompts of MCP servers are commands: /mcp__SERVER__PROMPT.
type Command struct {
	// Name is without the slash.
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// ArgumentHint shows the arguments: "<sku> [shelf]".
	ArgumentHint string            `json:"argumentHint,omitempty"`
	Arguments    []CommandArgument `json:"arguments,omitempty"`
	// Server and Prompt are the registration key of the prompt's server and its name there.
	Server string `json:"server,omitempty"`
	Prompt string `json:"prompt,omitempty"`
}

// A CommandArgument is an argument of a command. They are given in their order, separated by space,
// in single or double quotes where they have space in them, or as NAME=VALUE in any order.
type CommandArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// A Completion is what an argument may be, as its server proposes it.
type Completion struct {
	Values []string `json:"values"`
	// Total is how many there are in all, 0 if that is not known; HasMore says that there are more.
	Total   int  `json:"total,omitempty"`
	HasMore bool `json:"hasMore,omitempty"`
}

// A Commander is a [Session] that knows its commands. Not every engine's does.
type Commander interface {
	// Commands are the commands that there are now, sorted by name. Servers that do not answer in
	// time are left out until they do.
	Commands(ctx context.Context) ([]Command, error)
	// CompleteCommand proposes values for an argument of a command that begins with value. filled are
	// the other arguments so far. A server that proposes nothing is no error.
	CompleteCommand(ctx context.Context, command, argument, value string, filled map[string]string) (*Completion, error)
}

var errCommands = fmt.Errorf("agent: the session's engine does not list commands: %w", errors.ErrUnsupported)

// Commands returns the conversation's commands: what [SystemInit.SlashCommands] names, with their
// arguments. With an engine that does not list them the error is [errors.ErrUnsupported].
func (c *Client) Commands(ctx context.Context) ([]Command, error) {
	s, ok := c.session.(Commander)
	if !ok {
		return nil, errCommands
	}
	return s.Commands(ctx)
}

// CompleteCommand returns values for an argument of a command: see [Commander].
func (c *Client) CompleteCommand(ctx context.Context, command, argument, value string, filled map[string]string) (*Completion, error) {
	s, ok := c.session.(Commander)
	if !ok {
		return nil, errCommands
	}
	return s.CompleteCommand(ctx, command, argument, value, filled)
}
