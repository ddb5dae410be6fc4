package native

import (
	"errors"
	"math"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

// The costs are those that Claude Code 2.1.332 reports for this usage.
func TestPrices(t *testing.T) {
	u := agent.Usage{InputTokens: 10_000, OutputTokens: 300, CacheReadInputTokens: 7000, CacheCreationInputTokens: 500}
	for model, want := range map[string]float64{
		"claude-fable-5-2": 0.0984, "claude-mythos-5-2": 0.0984, "claude-fable-5-1": 0.123, "claude-mythos-5-1": 0.123,
		"claude-fable-5": 0.12825, "claude-opus-5-5": 0.0499, "claude-opus-5": 0.064125, "claude-opus-4-8": 0.064125,
		"claude-opus-4-7": 0.064125, "claude-opus-4-6": 0.064125, "claude-opus-4-5": 0.064125, "claude-sonnet-5-5": 0.02495,
		"claude-sonnet-5": 0.02565, "claude-sonnet-4-6": 0.038475, "claude-sonnet-4-5": 0.038475, "claude-haiku-5-5": 0.0012825,
		"claude-haiku-4-5": 0.012825,
		// The names of dated versions and of cloud platforms.
		"claude-sonnet-4-5-20250929": 0.038475, "us.anthropic.claude-opus-4-5-20251101-v1:0": 0.064125, "claude-haiku-4-5@20251001": 0.012825,
	} {
		p, ok := New(nil).priceOf(model)
		if got := p.Cost(u); !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v (%v), want %v", model, got, ok, want)
		}
	}
	if _, ok := New(nil).priceOf("gpt-7"); ok {
		t.Error("an unknown model has a price")
	}
}

func TestPriceDetails(t *testing.T) {
	p, _ := New(nil).priceOf("claude-haiku-5-5")
	// A prompt above the threshold costs more on every token.
	if got := p.Cost(agent.Usage{InputTokens: 60_000, CacheReadInputTokens: 40_001, OutputTokens: 1000}); math.Abs(got-(0.03+0.00200005+0.0025)) > 1e-9 {
		t.Errorf("long prompt: %v", got)
	}
	p, _ = New(nil).priceOf("claude-sonnet-4-5")
	writes := agent.Usage{CacheCreationInputTokens: 3000, CacheCreation: &agent.CacheCreation{Ephemeral5mInputTokens: 1000, Ephemeral1hInputTokens: 2000}}
	if got := p.Cost(writes); math.Abs(got-(0.00375+0.012)) > 1e-9 {
		t.Errorf("writes of both lifetimes: %v", got)
	}
	own := New(&Options{Prices: map[string]Price{"local": {Output: 1}, "claude-opus-5": {Input: 1}}})
	if p, ok := own.priceOf("local"); !ok || p.Output != 1 {
		t.Errorf("a price of the caller's: %+v, %v", p, ok)
	}
	if p, _ := own.priceOf("claude-opus-5"); p.Input != 1 {
		t.Errorf("the caller's price does not win: %+v", p)
	}
}

// A model without a price costs nothing and says so; with a budget it is an error.
func TestUnknownPrice(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("x"))
	msgs, err := collect(t, t.Context(), testEngine(model), "x", &agent.Options{Model: "local-7b"})
	r := last[*agent.Result](msgs)
	if err != nil || r.TotalCostUSD != 0 || string(r.Extra["unpriced_models"]) != `["local-7b"]` || r.ModelUsage["local-7b"].OutputTokens == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, o := range []*agent.Options{
		{Model: "local-7b", MaxBudgetUSD: 1},
		{Model: "claude-opus-5", FallbackModel: "local-7b", MaxBudgetUSD: 1},
	} {
		_, err := agent.Open(t.Context(), testEngine(model), o)
		if oe := (*agent.OptionError)(nil); !errors.As(err, &oe) || oe.Field != "MaxBudgetUSD" {
			t.Errorf("got %v, want an error of MaxBudgetUSD", err)
		}
	}
	c := open(t, model, &agent.Options{Model: "claude-opus-5", MaxBudgetUSD: 1})
	if err := c.SetModel(t.Context(), "local-7b"); err == nil {
		t.Error("a model without a price was taken although there is a budget")
	}
}
