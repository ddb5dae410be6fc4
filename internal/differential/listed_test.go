package differential

import "regexp"

// A difference is one that is known, explained under its id in docs/engines.md.
type difference struct {
	id string
	// scripts, key, native and cli say where it may be seen; nil matches everything.
	scripts, key, native, cli *regexp.Regexp
}

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// texts are the places where a tool's result is read.
var texts = re(`^(heard|sent) user `)

var differences = []difference{
	{id: "system-messages", key: re(`^heard system `)},
	{id: "result-text", scripts: re(`^two blocks of text$`), key: re(`^result text `)},
	{id: "saved-files", key: texts, cli: re(`\[Image: source: PATH\]|saved to PATH$`)},
	{id: "long-results", scripts: re(`^(long text|many lines)$`), key: texts, cli: re(`Full output saved to|has been saved to PATH`)},
	{id: "rounded-history", scripts: re(`big numbers in arguments`), key: re(`^sent assistant `)},
	{id: "failed-requests", scripts: re(`^(refused request|unknown key)$`), key: re(`^(heard assistant|result stop|result text|sent requests)`)},
	{id: "cut-answers", scripts: re(`^answer cut short$`)},
	{id: "refusals", scripts: re(`^refusal$`)},
	{id: "budget-calls", scripts: re(`^budget$`), key: re(`^(called x|heard user) `)},
	{id: "long-names", scripts: re(`^long name$`), key: re(`^(heard assistant|heard init tools|sent assistant|sent tool)`)},
	{id: "denial-text", scripts: re(`^(disallowed|callback changes the mode|don't ask mode|server off and on|prompt tool talks nonsense)`), key: texts},
	{id: "suggestions", scripts: re(`^(ask rule|pre hook asks)$`), key: re(`^suggested `), cli: re(`^null$`)},
	{id: "interrupt-text", scripts: re(`^(callback interrupts|interrupt during a tool|(notification|permission) hook that stops)$`), key: texts, cli: re(`The user doesn't want to proceed`)},
	{id: "hook-denials", scripts: re(`^pre hook (denies|stops the turn)$`), key: texts, cli: re(`PreToolUse:mcp__t__x hook error`)},
	{id: "hook-stops", scripts: re(`^(pre hook stops the turn|(notification|permission) hook that stops)$`), key: re(`^(result denials |heard user 1)`)},
	{id: "stop-feedback", scripts: re(`^stop hook goes on$`), key: texts},
	{id: "queued-input", scripts: re(`^message while a tool runs$`), key: re(`^sent user `)},
	{id: "set-model", scripts: re(`^another model$`), key: re(`^(heard user|sent user|sent requests)`)},
	{id: "output-errors", scripts: re(`^structured answer at the second try$`), key: texts},
	{id: "output-retries", scripts: re(`^text in place of a structured answer$`)},
}

// listed returns the id of the difference that f is a case of; empty if there is none.
func listed(script string, f finding) string {
	match := func(re *regexp.Regexp, s string) bool { return re == nil || re.MatchString(s) }
	for _, d := range differences {
		if match(d.scripts, script) && match(d.key, f.key) && match(d.native, f.native) && match(d.cli, f.cli) {
			return d.id
		}
	}
	return ""
}
