package modeltest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// knownFields are the top-level fields of a request that the API knows, with what it
// takes to use them: nothing, or a beta header.
var knownFields = map[string]string{
	"cache_control": "", "container": "", "diagnostics": "", "inference_geo": "", "max_tokens": "", "messages": "",
	"metadata": "", "model": "", "output_config": "", "service_tier": "", "speed": "", "stop_sequences": "",
	"stream": "", "system": "", "temperature": "", "thinking": "", "tool_choice": "", "tools": "", "top_k": "",
	"top_p": "",

	"billing_policy": anyBeta, "compaction": anyBeta, "context_management": "context-management", "fallback_credit_token": anyBeta,
	"fallbacks": anyBeta, "mcp_servers": "mcp-client", "output_format": "structured-outputs", "safeguards": "dangerous-tool-use", "thread": anyBeta,
}

// anyBeta is for fields whose header's name is not known here for certain.
const anyBeta = "*"

// countless are the fields that count_tokens does not take.
var countless = []string{
	"container", "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens", "metadata",
	"service_tier", "stop_sequences", "stream", "temperature", "top_k", "top_p",
}

func (d *decoder) allowsField(name string) bool {
	beta, known := knownFields[name]
	switch {
	case !known, d.count && slices.Contains(countless, name):
		return false
	case beta == "":
		return true
	}
	betas := d.r.Betas()
	if name == "context_management" && slices.ContainsFunc(betas, func(b string) bool { return strings.HasPrefix(b, "compact-") }) {
		return true
	}
	return slices.ContainsFunc(betas, func(b string) bool { return beta == anyBeta || strings.HasPrefix(b, beta+"-") })
}

// model decodes what every request has to say, besides its messages.
func (d *decoder) model() {
	d.required("model", func(p *path, v json.RawMessage) {
		d.r.Model = d.text(p, v)
		if d.r.Model == "" && kindOf(v) == '"' {
			d.fail(p, "String should have at least 1 character")
		}
	})
	if d.count {
		return
	}
	d.required("max_tokens", func(p *path, v json.RawMessage) {
		n, ok := d.integer(p, v)
		if ok && n < 1 {
			d.fail(p, "Input should be greater than or equal to 1")
		}
		d.r.MaxTokens = n
	})
	d.optional("stream", func(p *path, v json.RawMessage) { d.r.Stream = d.boolean(p, v) })
}

// settings checks the rest of the top-level fields.
func (d *decoder) settings() {
	d.optional("temperature", func(p *path, v json.RawMessage) { d.number(p, v, 0, 1) })
	d.optional("top_p", func(p *path, v json.RawMessage) { d.number(p, v, 0, 1) })
	d.optional("top_k", func(p *path, v json.RawMessage) {
		if n, ok := d.integer(p, v); ok && n < 0 {
			d.fail(p, "Input should be greater than or equal to 0")
		}
	})
	d.optional("stop_sequences", func(p *path, v json.RawMessage) {
		d.each(p, v, func(p *path, v json.RawMessage) {
			if s := d.text(p, v); strings.TrimSpace(s) == "" {
				d.fail(&path{name: "stop_sequences"}, "each stop sequence must contain non-whitespace")
			}
		})
	})
	d.optional("service_tier", func(p *path, v json.RawMessage) { d.oneOf(p, v, "auto", "standard_only") })
	d.optional("metadata", d.metadata)
	d.optional("thinking", d.thinking)
	d.optional("output_config", d.outputConfig)
	for _, name := range []string{"context_management", "diagnostics"} {
		d.optional(name, func(p *path, v json.RawMessage) { _ = d.object(p, v) })
	}
	d.optional("mcp_servers", func(p *path, v json.RawMessage) { _ = d.list(p, v) })
}

func (d *decoder) number(p *path, v json.RawMessage, low, high float64) {
	f, err := strconv.ParseFloat(string(v), 64)
	switch {
	case kindOf(v) != 'n' || err != nil:
		d.fail(p, "Input should be a valid number")
	case f < low:
		d.fail(p, "Input should be greater than or equal to %v", low)
	case f > high:
		d.fail(p, "Input should be less than or equal to %v", high)
	}
}

func (d *decoder) metadata(p *path, v json.RawMessage) {
	d.members(p, v, map[string]check{"user_id": func(p *path, v json.RawMessage) {
		if id := d.text(p, v); len(id) > 512 {
			d.fail(p, "String should have at most 512 characters")
		}
	}})
}

// thinking checks the thinking field, and what goes together with it.
func (d *decoder) thinking(p *path, v json.RawMessage) {
	var typ, display string
	budget, hasBudget := 0, false
	if !d.members(p, v, map[string]check{
		"type": d.word(&typ, "enabled", "disabled", "adaptive", "between_tools"),
		"budget_tokens": func(_ *path, v json.RawMessage) {
			budget, hasBudget = d.integer(p.key("enabled").key("budget_tokens"), v)
		},
		"display":       d.word(&display, "summarized", "omitted", "updates"),
		"block_binding": nil,
	}, "type") {
		return
	}
	switch {
	case typ == "enabled" && !hasBudget:
		d.fail(p.key("enabled").key("budget_tokens"), "Field required")
	case typ == "enabled" && budget < 1024:
		d.fail(p.key("enabled").key("budget_tokens"), "Input should be greater than or equal to 1024")
	case typ != "enabled" && hasBudget:
		d.fail(p.key(typ).key("budget_tokens"), extraInputs)
	case typ == "enabled" && !d.count && budget >= d.r.MaxTokens && !d.interleaved():
		d.fail(&path{name: "max_tokens"}, "`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	if typ == "enabled" || typ == "adaptive" {
		d.besideThinking()
	}
}

// interleaved says that a thinking budget covers several turns and so may
// exceed max_tokens.
func (d *decoder) interleaved() bool {
	return slices.ContainsFunc(d.r.Betas(), func(b string) bool { return strings.HasPrefix(b, "interleaved-thinking-") })
}

// besideThinking refuses the settings that don't go together with thinking.
func (d *decoder) besideThinking() {
	d.optional("temperature", func(p *path, v json.RawMessage) {
		if f, err := strconv.ParseFloat(string(v), 64); err == nil && f != 1 {
			d.fail(p, "`temperature` may only be set to 1 when thinking is enabled")
		}
	})
	d.optional("top_k", func(p *path, v json.RawMessage) {
		d.fail(p, "`top_k` must be unset when thinking is enabled")
	})
	if t := d.r.toolChoice(); t == "any" || t == "tool" {
		d.fail(&path{name: "tool_choice"}, "Thinking may not be enabled when tool_choice forces tool use.")
	}
}

func (d *decoder) outputConfig(p *path, v json.RawMessage) {
	var effort string
	d.members(p, v, map[string]check{
		"effort":      d.word(&effort, "low", "medium", "high", "xhigh", "max"),
		"format":      d.outputFormat,
		"task_budget": nil,
	})
}

// outputFormat checks the schema of a structured output.
func (d *decoder) outputFormat(p *path, v json.RawMessage) {
	var typ string
	d.members(p, v, map[string]check{
		"type": d.word(&typ, "json_schema"),
		"schema": func(p *path, v json.RawMessage) {
			if !d.object(p, v) {
				return
			}
			verdict := d.schemas.check(v)
			if verdict.msg != "" {
				d.failAt(p.String()+verdict.path, "%s", verdict.msg)
			}
			if verdict.open {
				d.fail(p, "For 'object' type, 'additionalProperties' must be explicitly set to false")
			}
		},
	}, "schema")
}
