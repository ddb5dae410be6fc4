package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A PromptHandler makes a prompt.
type PromptHandler func(ctx context.Context, args map[string]string) (*mcp.GetPromptResult, error)

// AddPrompt adds a prompt with typed arguments.
func AddPrompt[In any](s *Server, p *mcp.Prompt, h func(ctx context.Context, in In) (*mcp.GetPromptResult, error)) error {
	return errTodo
}

// AddPrompt adds a prompt.
func (s *Server) AddPrompt(p *mcp.Prompt, h PromptHandler) error { return errTodo }

// RemovePrompt removes prompts.
func (s *Server) RemovePrompt(names ...string) {}

// UserMessage is a prompt message of the user.
func UserMessage(text string) *mcp.PromptMessage { return nil }

// AssistantMessage is a prompt message of the assistant.
func AssistantMessage(text string) *mcp.PromptMessage { return nil }
