package toolresult

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/internal/clip"
)

const (
	// DefaultTokens is the largest number of tokens of a result.
	DefaultTokens = 25_000
	// DefaultChars is the largest number of characters of a result.
	DefaultChars = 50_000

	charsPerToken = 4 // for estimates
	// An error result above errorChars is cut to errorEdge characters at each end.
	errorChars   = 10_000
	errorEdge    = 5_000
	previewBytes = 2 << 10 // bytes shown of a stored result
)

// MaxDeclaredChars is the largest limit that a tool can declare for its results, and the limit of the
// texts of a result with images, in characters.
const MaxDeclaredChars = 500_000

// ParseTokens parses a value of MAX_MCP_OUTPUT_TOKENS. It returns 0 if that is not a positive number.
func ParseTokens(value string) int {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Limits limit results. Zero fields mean the defaults.
type Limits struct {
	Tokens int
	Chars  int
}

// LimitsFromEnv returns the limits of MAX_MCP_OUTPUT_TOKENS, read with [ParseTokens].
func LimitsFromEnv(lookup func(name string) (string, bool)) Limits {
	v, _ := lookup("MAX_MCP_OUTPUT_TOKENS") // empty when unset
	return Limits{Tokens: ParseTokens(v)}
}

// FitOptions are options of [Fit]. Nil means the defaults.
type FitOptions struct {
	Limits Limits
	// IsError marks the result of a failed call, which is cut and not stored.
	IsError bool
	// Declared is the limit in characters that the tool declares ([Tool.MaxResultSize]), at most
	// [MaxDeclaredChars]. It replaces both others. Zero means none.
	Declared int
	// CountTokens counts the tokens of a text. It is called only if an estimate is above half of the
	// limit. Nil, or an error, means the estimate.
	CountTokens func(ctx context.Context, text string) (int, error)
	// Store stores a text and returns its path; see [Store]. JSON in one line is indented first.
	// Without Store, or if it fails, the text is cut.
	Store func(text string) (path string, err error)
	// ReadTool is the name of the tool that reads stored results. Empty means none.
	ReadTool string
}

// An outputVerdict says what to do with a result.
type outputVerdict uint8

const (
	outputKeep     outputVerdict = iota
	outputStore                  // too many tokens: stored, and the model is told how to read it
	outputPreview                // too long: stored, and the model sees its beginning
	outputTruncate               // too long, with images: stored, and its text is cut
	outputCut                    // an error: its middle is cut out
)

// judgeOutput returns the verdict for a result of the given length. It calls tokens only if needed.
func judgeOutput(chars int, images bool, o *FitOptions, tokens func() int) outputVerdict {
	switch {
	case o.IsError && chars > errorChars:
		return outputCut
	case o.IsError:
		return outputKeep
	case images && chars > MaxDeclaredChars:
		return outputTruncate
	case images:
		return outputKeep
	case o.Declared > 0 && chars <= o.declared():
		return outputKeep
	case o.Declared > 0:
		return outputPreview
	case chars/charsPerToken > o.Limits.tokens()/2 && tokens() > o.Limits.tokens():
		return outputStore
	case chars > o.Limits.chars():
		return outputPreview
	}
	return outputKeep
}

func (o *FitOptions) declared() int { return min(o.Declared, MaxDeclaredChars) }

// chars returns how many characters of a text are kept when it is cut.
func (o *FitOptions) chars(v outputVerdict) int {
	switch {
	case v == outputTruncate:
		return MaxDeclaredChars
	case o.Declared > 0:
		return o.declared()
	case v == outputPreview:
		return o.Limits.chars()
	}
	return o.Limits.tokens() * charsPerToken
}

func (l Limits) tokens() int {
	if l.Tokens > 0 {
		return l.Tokens
	}
	return DefaultTokens
}

func (l Limits) chars() int {
	if l.Chars > 0 {
		return l.Chars
	}
	return DefaultChars
}

// Fit brings the blocks of [Convert] within the limits. It stores the whole text of a result that is
// too large with Store, and returns blocks that say where it is and how to read it. A result with
// images stays as it is up to [MaxDeclaredChars], since a file of text has no images; above that
// only its text is cut. Fit does not modify blocks.
func Fit(ctx context.Context, blocks []Block, o *FitOptions) []Block {
	if o == nil {
		o = &FitOptions{}
	}
	text, images := joinBlocks(blocks)
	chars := utf8.RuneCountInString(text)
	verdict := judgeOutput(chars, images, o, func() int {
		if o.CountTokens != nil {
			if n, err := o.CountTokens(ctx, text); err == nil {
				return n
			}
		}
		return chars / charsPerToken
	})
	switch verdict {
	case outputKeep:
		return blocks
	case outputCut:
		return oneText(cutMiddle(text, chars))
	}
	isJSON, whole := isContainer(text), text
	if isJSON {
		whole = readableJSON(text)
	}
	limit := o.chars(verdict)
	path, err := "", errors.New("there is no store")
	if o.Store != nil {
		path, err = o.Store(whole)
	}
	switch {
	case verdict == outputTruncate:
		return truncate(blocks, limit, o, path, err)
	case err != nil:
		return oneText(firstRunes(text, limit) + fmt.Sprintf("\n\n[OUTPUT TRUNCATED: %s characters in all; the rest could not be kept: %v]", thousands(chars), err))
	case verdict == outputStore:
		return oneText(storedText(whole, chars, isJSON, path, o.ReadTool))
	}
	return oneText(previewText(whole, isJSON, path, o.ReadTool))
}

func oneText(s string) []Block { return []Block{{Type: "text", Text: s}} }

func joinBlocks(blocks []Block) (text string, images bool) {
	var parts []string
	for _, b := range blocks {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		} else {
			images = true
		}
	}
	return strings.Join(parts, "\n"), images
}

// storedText is the text in place of a result with too many tokens.
func storedText(text string, chars int, isJSON bool, path, tool string) string {
	lines := strings.Count(text, "\n") + 1
	var b strings.Builder
	fmt.Fprintf(&b, "Error: result (%s characters across %s lines) exceeds maximum allowed tokens. Output has been saved to %s.\n", thousands(chars), thousands(lines), path)
	if isJSON {
		fmt.Fprintf(&b, "Format: JSON: %s\n", shapeOf(text))
	} else {
		b.WriteString("Format: plain text\n")
	}
	b.WriteString(howToRead(lines, tool))
	b.WriteString("Read all of it before you summarise it or draw conclusions from it; if you have read a part only, say so.\n")
	fmt.Fprintf(&b, "\nPreview (first 2KB):\n%s\n...", EscapeHostTags(clip.Bytes(text, previewBytes)))
	return b.String()
}

func howToRead(lines int, tool string) string {
	switch {
	case tool == "":
		return "Read the file in parts.\n"
	case lines < 3:
		return fmt.Sprintf("It has long lines: search it with %s (pattern), or read it in parts with %s (column).\n", tool, tool)
	}
	return fmt.Sprintf("Read it in parts with %s (offset and limit), or search it (pattern).\n", tool)
}

// previewText is the text in place of a result that is too long.
func previewText(text string, isJSON bool, path, tool string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<persisted-output>\nOutput too large (%.1fKB). Full output saved to: %s\n\n", float64(len(text))/1024, path)
	if isJSON {
		fmt.Fprintf(&b, "Format: JSON: %s\n\n", shapeOf(text))
	}
	fmt.Fprintf(&b, "Preview (first 2KB):\n%s\n...\n", EscapeHostTags(clip.Bytes(text, previewBytes)))
	if tool != "" {
		b.WriteString(howToRead(strings.Count(text, "\n")+1, tool))
	}
	b.WriteString("</persisted-output>")
	return b.String()
}

// cutMiddle removes the middle of an error's text.
func cutMiddle(text string, chars int) string {
	head, tail := firstRunes(text, errorEdge), lastRunes(text, errorEdge)
	return head + fmt.Sprintf("\n\n... [%d characters truncated] ...\n\n", chars-2*errorEdge) + tail
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// truncate cuts the text of a result with images.
func truncate(blocks []Block, room int, o *FitOptions, path string, storeErr error) []Block {
	var out []Block
	for _, b := range blocks {
		if b.Type == "text" {
			b.Text = firstRunes(b.Text, room)
			room -= utf8.RuneCountInString(b.Text)
		}
		if b.Type != "text" || b.Text != "" {
			out = append(out, b)
		}
	}
	note := fmt.Sprintf("[OUTPUT TRUNCATED - exceeded %d character limit]", MaxDeclaredChars)
	if storeErr == nil {
		note += fmt.Sprintf("\nThe whole text has been saved to %s. %s", path, strings.TrimSuffix(howToRead(3, o.ReadTool), "\n"))
	}
	return append(out, Block{Type: "text", Text: note})
}

// thousands formats a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
