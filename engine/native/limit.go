package native

import (
	"cmp"
	"context"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/toolresult"
)

const (
	// maxErrorChars bounds the text of an error of the engine, in characters. Of a longer text both ends are
	// kept, as [toolresult.Fit] does for errors of tools.
	maxErrorChars = 10_000
	// countReach is the multiple of the limit up to which the API counts a text that the estimate finds too long.
	countReach = 4
)

// skip returns the index in text after n characters.
func skip(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// outputOptions returns the limits of a result. declared is the tool's own limit in characters.
func (t *turn) outputOptions(server, tool string, isError bool, declared int) *toolresult.FitOptions {
	limits := toolresult.LimitsFromEnv(t.s.env.lookup)
	return &toolresult.FitOptions{
		Limits: limits, IsError: isError, Declared: declared, ReadTool: readTool,
		Store: func(text string) (string, error) {
			path, err := t.s.store.StoreText(server, tool, text)
			if err != nil {
				t.s.opts.Logger.Warn("a result could not be stored", "server", server, "tool", tool, "error", err)
				return "", err
			}
			t.s.stored.Store(true)
			return path, nil
		},
		CountTokens: func(ctx context.Context, text string) (int, error) {
			estimate := utf8.RuneCountInString(text) / toolset.CharsPerToken
			if estimate > countReach*cmp.Or(limits.Tokens, toolresult.DefaultTokens) {
				return estimate, nil
			}
			return t.s.api.CountTokens(ctx, t.s.model, text)
		},
	}
}

// fitContent fits content of a hook to the limits of results.
func (t *turn) fitContent(c *call, content agent.Content) agent.Content {
	var blocks []toolresult.Block
	var others agent.Content
	total := 0
	for _, b := range content {
		if t, ok := b.(*agent.TextBlock); ok {
			blocks = append(blocks, toolresult.Block{Type: "text", Text: t.Text})
			total += len(t.Text)
			continue
		}
		blocks = append(blocks, toolresult.Block{Type: "image"}) // whatever it is
		others = append(others, b)
	}
	if total <= toolresult.DefaultChars && t.s.env.get("MAX_MCP_OUTPUT_TOKENS") == "" {
		return content
	}
	fitted := toolresult.Fit(t.ctx, blocks, t.outputOptions("hook", c.use.Name, false, 0))
	if len(fitted) == len(blocks) && &fitted[0] == &blocks[0] {
		return content
	}
	var out agent.Content
	for _, b := range fitted {
		switch {
		case b.Type == "image":
			out, others = append(out, others[0]), others[1:]
		case !transcript.IsBlank(b.Text):
			out = append(out, &agent.TextBlock{Text: b.Text})
		}
	}
	return out
}
