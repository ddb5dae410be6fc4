package messages

import (
	"cmp"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// A Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Input, Output, CacheWrite5m, CacheWrite1h, CacheRead float64
	// LongPrompt replaces the price of a request whose prompt, cache reads and writes included,
	// has more than LongPromptTokens tokens. Nil means that length does not matter.
	LongPrompt       *Price
	LongPromptTokens int64
}

// PriceSource is the source of the prices below.
const PriceSource = "https://platform.claude.com/docs/en/about-claude/pricing, as of 2026-10-24, " +
	"and what Claude Code 2.1.332 counts"

// DefaultModel is the model of runs that name none.
const DefaultModel = "claude-sonnet-5-5"

// modelSpec is what is known of a model.
type modelSpec struct {
	Price         Price
	ContextWindow int64
	MaxOutput     int64
}

const million = 1_000_000

// modelSpecs are by the model ID without a date. Prices: see priceSource.
var modelSpecs = map[string]modelSpec{
	"claude-fable-5-2":  {Price{Input: 8, Output: 40, CacheWrite5m: 10, CacheWrite1h: 16, CacheRead: 0.20}, million, 128_000},
	"claude-mythos-5-2": {Price{Input: 8, Output: 40, CacheWrite5m: 10, CacheWrite1h: 16, CacheRead: 0.20}, million, 128_000},
	"claude-fable-5-1":  {Price{Input: 10, Output: 50, CacheWrite5m: 12.5, CacheWrite1h: 20, CacheRead: 0.25}, million, 128_000},
	"claude-mythos-5-1": {Price{Input: 10, Output: 50, CacheWrite5m: 12.5, CacheWrite1h: 20, CacheRead: 0.25}, million, 128_000},
	"claude-fable-5":    {Price{Input: 10, Output: 50, CacheWrite5m: 12.5, CacheWrite1h: 20, CacheRead: 1}, million, 128_000},
	"claude-mythos-5":   {Price{Input: 10, Output: 50, CacheWrite5m: 12.5, CacheWrite1h: 20, CacheRead: 1}, million, 128_000},
	"claude-opus-5-5":   {Price{Input: 4, Output: 20, CacheWrite5m: 5, CacheWrite1h: 8, CacheRead: 0.20}, million, 128_000},
	"claude-opus-5":     {opus, million, 128_000},
	"claude-opus-4-8":   {opus, million, 128_000},
	"claude-opus-4-7":   {opus, million, 128_000},
	"claude-opus-4-6":   {opus, million, 128_000},
	"claude-opus-4-5":   {opus, 200_000, 64_000},
	"claude-sonnet-5-5": {Price{Input: 2, Output: 10, CacheWrite5m: 2.5, CacheWrite1h: 4, CacheRead: 0.10}, million, 128_000},
	"claude-sonnet-5":   {Price{Input: 2, Output: 10, CacheWrite5m: 2.5, CacheWrite1h: 4, CacheRead: 0.20}, million, 128_000},
	"claude-sonnet-4-6": {sonnet4, million, 64_000},
	"claude-sonnet-4-5": {sonnet4, 200_000, 64_000},
	"claude-haiku-5-5": {Price{
		Input: 0.10, Output: 0.50, CacheWrite5m: 0.125, CacheWrite1h: 0.20, CacheRead: 0.01,
		LongPromptTokens: 100_000,
		LongPrompt:       &Price{Input: 0.50, Output: 2.50, CacheWrite5m: 0.625, CacheWrite1h: 1, CacheRead: 0.05},
	}, million, 128_000},
	"claude-haiku-4-5": {Price{Input: 1, Output: 5, CacheWrite5m: 1.25, CacheWrite1h: 2, CacheRead: 0.10}, 200_000, 64_000},
}

var (
	opus    = Price{Input: 5, Output: 25, CacheWrite5m: 6.25, CacheWrite1h: 10, CacheRead: 0.50}
	sonnet4 = Price{Input: 3, Output: 15, CacheWrite5m: 3.75, CacheWrite1h: 6, CacheRead: 0.30}
)

// aliases are the short names of the latest model of each family, as Claude Code has them.
var aliases = map[string]string{
	"default": DefaultModel, "fable": "claude-fable-5-2", "opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5",
}

// ModelOf returns the ID of a model that may be named by an alias.
func ModelOf(name string) string { return cmp.Or(aliases[strings.ToLower(name)], name) }

// SpecOf returns what is known of a model, also under the names of cloud platforms.
func SpecOf(model string) (modelSpec, bool) {
	spec, ok := modelSpecs[transcript.PlainModel(model)]
	return spec, ok
}

// Cost returns the cost of a response.
func (p Price) Cost(u agent.Usage) float64 {
	if p.LongPrompt != nil && u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens > p.LongPromptTokens {
		return p.LongPrompt.Cost(u)
	}
	writes5m, writes1h := u.CacheCreationInputTokens, int64(0)
	if c := u.CacheCreation; c != nil {
		writes1h = c.Ephemeral1hInputTokens
		writes5m -= writes1h
	}
	return (float64(u.InputTokens)*p.Input + float64(u.OutputTokens)*p.Output +
		float64(u.CacheReadInputTokens)*p.CacheRead +
		float64(writes5m)*p.CacheWrite5m + float64(writes1h)*p.CacheWrite1h) / million
}

// The limits of tokens of a response if Options.MaxTokens is zero.
const (
	defaultMaxTokens        = 32_000
	defaultMaxTokensUnknown = 8_192
)

// MaxTokensFor returns the limit of tokens for a response of a model.
func MaxTokensFor(model string) int {
	if spec, ok := SpecOf(model); ok {
		return int(min(defaultMaxTokens, spec.MaxOutput))
	}
	return defaultMaxTokensUnknown
}

// AddUsage adds token counts to a sum.
func AddUsage(sum *agent.Usage, u agent.Usage) {
	sum.InputTokens += u.InputTokens
	sum.OutputTokens += u.OutputTokens
	sum.CacheReadInputTokens += u.CacheReadInputTokens
	sum.CacheCreationInputTokens += u.CacheCreationInputTokens
	if u.CacheCreation != nil {
		c := *cmp.Or(sum.CacheCreation, new(agent.CacheCreation))
		c.Ephemeral5mInputTokens += u.CacheCreation.Ephemeral5mInputTokens
		c.Ephemeral1hInputTokens += u.CacheCreation.Ephemeral1hInputTokens
		sum.CacheCreation = &c
	}
	if u.ServerToolUse != nil {
		t := *cmp.Or(sum.ServerToolUse, new(agent.ServerToolUsage))
		t.WebSearchRequests += u.ServerToolUse.WebSearchRequests
		t.WebFetchRequests += u.ServerToolUse.WebFetchRequests
		sum.ServerToolUse = &t
	}
	sum.ServiceTier = cmp.Or(u.ServiceTier, sum.ServiceTier)
}
