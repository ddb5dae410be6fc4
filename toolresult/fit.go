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
	// DefaultTokens is the most that a result may weigh in the model's context.
	DefaultTokens = 25_000
	// DefaultChars is the longest text result, whatever it weighs.
	DefaultChars = 50_000

	// charsPerToken is the estimate where nobody counts.
	charsPerToken = 4
	// errorChars is the longest text of an error result, errorEdge what is kept
	// of both its ends beyond that.
	errorChars = 10_000
	errorEdge  = 5_000
	// previewBytes is how much of a stored result is shown.
	previewBytes = 2 << 10
)

// MaxDeclaredChars is the largest limit that a tool can declare for its results,
// in characters, and the limit of the texts of a result with images: a request to
// the model has an end, whatever a server says.
const MaxDeclaredChars = 500_000

// ParseTokens returns the number of tokens that a value of MAX_MCP_OUTPUT_TOKENS stands for, or 0
// if the value is not a positive number.
func ParseTokens(value string) int {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Limits are the limits of results. Zero fields mean the defaults.
type Limits struct {
	Tokens int
	Chars  int
}

// LimitsFromEnv reads MAX_MCP_OUTPUT_TOKENS. What is no positive number
// counts as unset.
func LimitsFromEnv(lookup func(name string) (string, bool)) Limits {
	v, _ := lookup("MAX_MCP_OUTPUT_TOKENS") // empty when unset
	return Limits{Tokens: ParseTokens(v)}
}

// FitOptions are options of [Fit]. Nil means the defaults.
type FitOptions struct {
	Limits Limits
	// IsError marks the result of a failed call: it is cut, never stored.
	IsError bool
	// Declared is the limit in characters that the tool declares for itself
	// ([Tool.MaxResultSize]); it replaces both others. Zero means none, and more
	// than [MaxDeclaredChars] means that.
	Declared int
	// CountTokens counts what a text weighs. It is asked only when an estimate
	// is above half of the limit. Nil, or an error, means the estimate.
	CountTokens func(ctx context.Context, text string) (int, error)
	// Store keeps a text and returns the path under which it can be read: see
	// [Store]. Without it, or when it fails, the text is cut. JSON that
	// stands in one line is laid out in lines first.
	Store func(text string) (path string, err error)
	// ReadTool is the name of the tool that reads stored results; empty for none.
	ReadTool string
}

// An outputVerdict is what becomes of a result.
type outputVerdict uint8

const (
	outputKeep     outputVerdict = iota
	outputStore                  // too heavy: stored, and the model is told how to read it
	outputPreview                // too long: stored, and the model sees its beginning
	outputTruncate               // too long, with images: stored, and its text is cut
	outputCut                    // an error: its middle is cut out
)

// judgeOutput decides what becomes of a result of so many characters. tokens
// tells its weight and is asked only if that matters.
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

// chars is how many characters are kept of a text that has to be cut.
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

// Fit brings a result, as [Convert] returns it, within the limits of
// what a model should be sent. Nothing is lost as long as there is a Store: the
// whole text is kept there, and the blocks that are returned say where and how
// to read it. A result with images is exempt, since images cannot be read from a
// file of text: it stays as it is up to [MaxDeclaredChars] of text, and beyond
// that only its text is cut. blocks is not modified.
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
	path, err := "", errors.New("there is no place for it")
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

// storedText is what the model reads in place of a result that is too heavy.
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

// previewText is what the model reads in place of a result that is too long.
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

// cutMiddle cuts the middle out of an error's text.
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

// thousands renders a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
