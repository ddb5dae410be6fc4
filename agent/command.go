package agent

import (
	"context"
	"errors"
	"fmt"
)

// A Command can be sent as an input: "/NAME arguments". The prompts of MCP servers are commands with the
// name mcp__SERVER__PROMPT.
type Command struct {
	// Name has no slash.
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// ArgumentHint shows the arguments: "<sku> [shelf]".
	ArgumentHint string            `json:"argumentHint,omitempty"`
	Arguments    []CommandArgument `json:"arguments,omitempty"`
	// Server is the key of the prompt's server, and Prompt the name of the prompt there.
	Server string `json:"server,omitempty"`
	Prompt string `json:"prompt,omitempty"`
}

// A CommandArgument is an argument of a command. Arguments are separated by spaces. A value with spaces is
// in single or double quotes. Arguments are in order, or NAME=VALUE in any order.
type CommandArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// A Completion lists the values that a server proposes for an argument.
type Completion struct {
	Values []string `json:"values"`
	// Total is the number of all values, or 0 if unknown. HasMore is set if there are more.
	Total   int  `json:"total,omitempty"`
	HasMore bool `json:"hasMore,omitempty"`
}

// A Commander is a [Session] that lists its commands.
type Commander interface {
	// Commands returns the current commands, sorted by name. It leaves out the prompts of servers that do
	// not answer in time.
	Commands(ctx context.Context) ([]Command, error)
	// CompleteCommand returns proposals for an argument that begins with value. filled has the other
	// arguments. No proposals are not an error.
	CompleteCommand(ctx context.Context, command, argument, value string, filled map[string]string) (*Completion, error)
}

var errCommands = fmt.Errorf("agent: the session's engine does not list commands: %w", errors.ErrUnsupported)

// Commands returns the conversation's commands with their arguments. If the engine does not list
// commands, the error matches [errors.ErrUnsupported].
func (c *Client) Commands(ctx context.Context) ([]Command, error) {
	s, ok := c.session.(Commander)
	if !ok {
		return nil, errCommands
	}
	return s.Commands(ctx)
}

// CompleteCommand returns proposals for an argument of a command; see [Commander].
func (c *Client) CompleteCommand(ctx context.Context, command, argument, value string, filled map[string]string) (*Completion, error) {
	s, ok := c.session.(Commander)
	if !ok {
		return nil, errCommands
	}
	return s.CompleteCommand(ctx, command, argument, value, filled)
}
