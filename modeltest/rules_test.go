package modeltest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/sjson"
)

// with is the basic request with a field set to JSON.
func with(path, value string) string { return set(basic, path, value) }

func set(body, path, value string) string {
	out, err := sjson.SetRaw(body, path, value)
	if err != nil {
		panic(err)
	}
	return out
}

// tools is the basic request with these tools.
func tools(defs ...string) string { return with("tools", "["+strings.Join(defs, ",")+"]") }

func tool(name string) string { return `{"name":"` + name + `","input_schema":{"type":"object"}}` }

// schema is the basic request with one tool of this schema.
func schema(s string) string { return tools(`{"name":"t","input_schema":` + s + `}`) }

// messages is the basic request with a conversation.
func messages(msgs ...string) string { return with("messages", "["+strings.Join(msgs, ",")+"]") }

func user(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

func assistant(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

const hi = `{"type":"text","text":"hi"}`

func use(id string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"t","input":{}}`
}

func result(id string) string {
	return `{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}`
}

// A rule is a body and the beginning of what it is refused with; empty: it is accepted.
type rule struct{ name, body, want string }

func TestTopLevelRules(t *testing.T) {
	checkRules(t, []rule{
		{"the basic request", basic, ""},
		{"no object", `[]`, "Input should be an object"},
		{"no JSON", `{"model":`, "The request body is not valid JSON: unexpected end of JSON input: line 1 column 10 (char 9)"},
		{"a lone surrogate", set(basic, "messages.0.content", `"a\ud83d"`), "The request body is not valid JSON: invalid surrogate pair"},
		{"invalid UTF-8", strings.Replace(basic, "Hello", "\xc3\x28", 1), "The request body is not valid JSON: invalid UTF-8"},
		{"no model", `{"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, "model: Field required"},
		{"empty model", with("model", `""`), "model: String should have at least 1 character"},
		{"no max_tokens", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, "max_tokens: Field required"},
		{"max_tokens 0", with("max_tokens", `0`), "max_tokens: Input should be greater than or equal to 1"},
		{"max_tokens a string", with("max_tokens", `"12"`), "max_tokens: Input should be a valid integer"},
		{"max_tokens a fraction", with("max_tokens", `1.5`), "max_tokens: Input should be a valid integer"},
		{"max_tokens 64.0", with("max_tokens", `64.0`), ""},
		{"no messages", `{"model":"m","max_tokens":1}`, "messages: Field required"},
		{"messages null", with("messages", `null`), "messages: Input should be a valid list"},
		{"messages empty", with("messages", `[]`), "messages: at least one message is required"},
		{"stream a number", with("stream", `1`), "stream: Input should be a valid boolean"},
		{"unknown field", with("max_token", `3`), "max_token: Extra inputs are not permitted"},
		{"another API's field", with("max_completion_tokens", `3`), "max_completion_tokens: Extra inputs are not permitted"},
		{"wrong case", with("Stream", `true`), "Stream: Extra inputs are not permitted"},
		{"beta field without its header", with("context_management", `{}`), "context_management: Extra inputs are not permitted"},
		{"system a string", with("system", `"be brief"`), ""},
		{"system blocks", with("system", `[`+hi+`]`), ""},
		{"system an image", with("system", `[{"type":"image","source":{"type":"url","url":"x"}}]`), "system.0: Input tag 'image' found using 'type' does not match any of the expected tags: 'text'"},
		{"system null", with("system", `null`), "system: Input should be a valid string or a valid list"},
		{"system empty text", with("system", `[{"type":"text","text":""}]`), "system.0: text content blocks must be non-empty"},
		{"temperature 1.1", with("temperature", `1.1`), "temperature: Input should be less than or equal to 1"},
		{"temperature negative", with("temperature", `-0.1`), "temperature: Input should be greater than or equal to 0"},
		{"temperature a string", with("temperature", `"0"`), "temperature: Input should be a valid number"},
		{"top_p 2", with("top_p", `2`), "top_p: Input should be less than or equal to 1"},
		{"top_k negative", with("top_k", `-1`), "top_k: Input should be greater than or equal to 0"},
		{"stop_sequences", with("stop_sequences", `["END"]`), ""},
		{"stop_sequences blank", with("stop_sequences", `[" "]`), "stop_sequences: each stop sequence must contain non-whitespace"},
		{"stop_sequences a string", with("stop_sequences", `"x"`), "stop_sequences: Input should be a valid list"},
		{"service_tier", with("service_tier", `"fast"`), "service_tier: Input should be 'auto' or 'standard_only'"},
		{"metadata", with("metadata", `{"user_id":"u"}`), ""},
		{"metadata unknown", with("metadata", `{"tenant":"u"}`), "metadata.tenant: Extra inputs are not permitted"},
		{"effort", with("output_config", `{"effort":"high"}`), ""},
		{"effort unknown", with("output_config", `{"effort":"huge"}`), "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"},
		{"output_config unknown", with("output_config", `{"style":"x"}`), "output_config.style: Extra inputs are not permitted"},
		{"output schema", with("output_config", `{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}}}`), ""},
		{"output schema open", with("output_config", `{"format":{"type":"json_schema","schema":{"type":"object"}}}`), "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"},
		{"output schema missing", with("output_config", `{"format":{"type":"json_schema"}}`), "output_config.format.schema: Field required"},
	})
}

func TestThinkingRules(t *testing.T) {
	thinking := func(v string) string { return set(with("max_tokens", `4096`), "thinking", v) }
	checkRules(t, []rule{
		{"budget", thinking(`{"type":"enabled","budget_tokens":1024}`), ""},
		{"adaptive", thinking(`{"type":"adaptive","display":"omitted"}`), ""},
		{"disabled", thinking(`{"type":"disabled"}`), ""},
		{"small budget", thinking(`{"type":"enabled","budget_tokens":1023}`), "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
		{"budget as large as max_tokens", thinking(`{"type":"enabled","budget_tokens":4096}`), "max_tokens: `max_tokens` must be greater than `thinking.budget_tokens`"},
		{"no budget", thinking(`{"type":"enabled"}`), "thinking.enabled.budget_tokens: Field required"},
		{"budget with adaptive", thinking(`{"type":"adaptive","budget_tokens":2000}`), "thinking.adaptive.budget_tokens: Extra inputs are not permitted"},
		{"no type", thinking(`{}`), "thinking.type: Field required"},
		{"unknown type", thinking(`{"type":"on"}`), "thinking.type: Input should be 'enabled'"},
		{"temperature", set(thinking(`{"type":"adaptive"}`), "temperature", `0.5`), "temperature: `temperature` may only be set to 1"},
		{"top_k", set(thinking(`{"type":"adaptive"}`), "top_k", `5`), "top_k: `top_k` must be unset"},
		{"forced tool", set(set(thinking(`{"type":"adaptive"}`), "tools", `[`+tool("t")+`]`), "tool_choice", `{"type":"any"}`), "tool_choice: Thinking may not be enabled when tool_choice forces tool use."},
		{"signed block", messages(user(hi), assistant(signed("hm"), hi), user(hi)), ""},
		{"unsigned block", messages(user(hi), assistant(`{"type":"thinking","thinking":"hm"}`, hi), user(hi)), "messages.1.content.0.thinking.signature: Field required"},
		{"empty signature", messages(user(hi), assistant(`{"type":"thinking","thinking":"hm","signature":""}`, hi), user(hi)), "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"changed text", messages(user(hi), assistant(strings.Replace(signed("hm"), "hm", "hmm", 1), hi), user(hi)), "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"thinking at the end", messages(user(hi), assistant(hi, signed("hm")), user(hi)), "messages.1: The final block in an assistant message cannot be `thinking`."},
		{"thinking of the user", messages(user(signed("hm"))), "messages.0.content.0: `thinking` blocks can only be in `assistant` messages"},
	})
}

func signed(s string) string {
	return `{"type":"thinking","thinking":"` + s + `","signature":"` + Signature(s) + `"}`
}

func TestToolRules(t *testing.T) {
	deferred := `{"name":"d","input_schema":{"type":"object"},"defer_loading":true}`
	long := strings.Repeat("n", 128)
	checkRules(t, []rule{
		{"tools", tools(tool("a"), tool("b-_9"), tool(long)), ""},
		{"name with a dot", tools(tool("a"), tool("a.b")), "tools.1.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		{"name with a space", tools(tool("a b")), "tools.0.custom.name: String should match pattern"},
		{"name not ASCII", tools(tool("é")), "tools.0.custom.name: String should match pattern"},
		{"name ending in a line break", tools(tool(`a\n`)), "tools.0.custom.name: String should match pattern"},
		{"name too long", tools(tool(long + "n")), "tools.0.custom.name: String should have at most 128 characters"},
		{"name empty", tools(tool("")), "tools.0.custom.name: String should have at least 1 character"},
		{"name missing", tools(`{"input_schema":{"type":"object"}}`), "tools.0.custom.name: Field required"},
		{"names twice", tools(tool("a"), tool("b"), tool("a")), "tools: Tool names must be unique."},
		{"unknown field", tools(`{"name":"a","input_schema":{"type":"object"},"annotations":{}}`), "tools.0.custom.annotations: Extra inputs are not permitted"},
		{"inputSchema as in MCP", tools(`{"name":"a","inputSchema":{"type":"object"}}`), "tools.0.custom.inputSchema: Extra inputs are not permitted"},
		{"description a number", tools(`{"name":"a","input_schema":{"type":"object"},"description":3}`), "tools.0.custom.description: Input should be a valid string"},
		{"no object", tools(`"a"`), "tools.0: Input should be an object"},
		{"server tool", tools(`{"type":"web_search_20250305","name":"web_search","max_uses":3}`), ""},
		{"unknown type", tools(`{"type":"function","name":"a"}`), "tools.0: Input tag 'function' found using 'type' does not match"},
		{"deferred beside another", tools(tool("a"), deferred), ""},
		{"all deferred", tools(deferred), "tools: All tools have defer_loading set. At least one tool must be non-deferred."},
		{"deferred and cached", tools(tool("a"), strings.Replace(deferred, "{", `{"cache_control":{"type":"ephemeral"},`, 1)), "tools.1.custom: Tool 'd' cannot have both defer_loading=true and cache_control set."},
		{"strict and open", tools(`{"name":"a","strict":true,"input_schema":{"type":"object"}}`), "tools.0.custom.input_schema: For 'object' type, 'additionalProperties' must be explicitly set to false"},
		{"tool_choice", set(tools(tool("a")), "tool_choice", `{"type":"tool","name":"a","disable_parallel_tool_use":true}`), ""},
		{"tool_choice of a stranger", set(tools(tool("a")), "tool_choice", `{"type":"tool","name":"b"}`), "tool_choice: Tool 'b' not found in provided tools"},
		{"tool_choice without tools", with("tool_choice", `{"type":"auto"}`), "tool_choice: tool_choice may only be specified while providing tools"},
		{"tool_choice unknown", set(tools(tool("a")), "tool_choice", `{"type":"force"}`), "tool_choice.type: Input should be"},
	})
}

func TestSchemaRules(t *testing.T) {
	const at = "tools.0.custom.input_schema"
	const bad = at + ": JSON schema is invalid. It must match JSON Schema draft 2020-12"
	key64 := strings.Repeat("k", 64)
	checkRules(t, []rule{
		{"missing", tools(`{"name":"t"}`), at + ": Field required"},
		{"null", schema(`null`), at + ": Input should be an object"},
		{"true", schema(`true`), at + ": Input should be an object"},
		{"no type", schema(`{}`), at + ".type: Field required"},
		{"type array", schema(`{"type":"array"}`), at + ".type: Input should be 'object'"},
		{"type union", schema(`{"type":["object","null"]}`), at + ".type: Input should be 'object'"},
		{"root anyOf", schema(`{"type":"object","anyOf":[{}]}`), at + ": input_schema does not support oneOf, allOf, or anyOf at the top level"},
		{"root oneOf", schema(`{"type":"object","oneOf":[{}]}`), at + ": input_schema does not support oneOf"},
		{"root allOf", schema(`{"type":"object","allOf":[{}]}`), at + ": input_schema does not support oneOf"},
		{"inner anyOf", schema(`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`), ""},
		{"root not, if, then", schema(`{"type":"object","not":{"required":["z"]},"if":{"required":["a"]},"then":{"required":["b"]}}`), ""},
		{"$defs and $ref", schema(`{"type":"object","$defs":{"Q":{"type":"integer"}},"properties":{"q":{"$ref":"#/$defs/Q"}}}`), ""},
		{"recursive", schema(`{"type":"object","properties":{"next":{"$ref":"#"}}}`), ""},
		{"$ref to itself", schema(`{"type":"object","$ref":"#"}`), ""},
		{"draft-07 declared", schema(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`), ""},
		{"unknown dialect declared", schema(`{"$schema":"urn:mine","type":"object"}`), ""},
		{"ECMA pattern", schema(`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=x)\\p{L}"}}}`), ""},
		{"unknown keyword and format", schema(`{"type":"object","x-y":1,"properties":{"a":{"format":"odd"}}}`), ""},
		{"key of 64", schema(`{"type":"object","properties":{"` + key64 + `":{},"a.b-c_9":{}}}`), ""},
		{"key of 65", schema(`{"type":"object","properties":{"k` + key64 + `":{}}}`), at + ".properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$' (found"},
		{"bracket key", schema(`{"type":"object","properties":{"filter[]":{}}}`), at + `.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$' (found "filter[]")`},
		{"empty key", schema(`{"type":"object","properties":{"":{}}}`), at + ".properties: Property keys should match pattern"},
		{"nested key", schema(`{"type":"object","properties":{"a":{"type":"array","items":{"properties":{"ü":{}}}}}}`), at + ".properties.a.items.properties: Property keys should match pattern"},
		{"key in $defs", schema(`{"type":"object","$defs":{"a b":{"properties":{"c d":{}}}}}`), at + ".$defs.a b.properties: Property keys should match pattern"},
		{"key in an anyOf branch", schema(`{"type":"object","properties":{"a":{"anyOf":[{},{"properties":{"c d":{}}}]}}}`), at + ".properties.a.anyOf.1.properties: Property keys should match pattern"},
		{"a property called properties", schema(`{"type":"object","properties":{"properties":{"type":"object","default":{"properties":{"a b":1}}}}}`), ""},
		{"properties null", schema(`{"type":"object","properties":null}`), bad},
		{"unknown type", schema(`{"type":"object","properties":{"a":{"type":"int"}}}`), bad},
		{"required a boolean", schema(`{"type":"object","properties":{"a":{"required":true}}}`), bad},
		{"items a list", schema(`{"type":"object","properties":{"a":{"type":"array","items":[{}]}}}`), bad},
		{"draft-04 exclusiveMinimum", schema(`{"type":"object","properties":{"a":{"exclusiveMinimum":true}}}`), bad},
		{"dangling $ref", schema(`{"type":"object","properties":{"a":{"$ref":"#/$defs/gone"}}}`), bad},
		{"remote $ref", schema(`{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/x.json"}}}`), bad},
		{"file $ref", schema(`{"type":"object","properties":{"a":{"$ref":"file:///etc/hostname"}}}`), bad},
		{"deep", schema(`{"type":"object","properties":{"a":` + strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200) + `}}`), bad},
		{"large", schema(`{"type":"object","description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`), bad},
	})
}

func TestMessageRules(t *testing.T) {
	checkRules(t, []rule{
		{"two users in a row", messages(user(hi), user(hi)), ""},
		{"two assistants in a row", messages(user(hi), assistant(hi), assistant(hi), user(hi)), ""},
		{"assistant first", messages(assistant(hi), user(hi)), `messages: first message must use the "user" role`},
		{"unknown role", messages(`{"role":"tool","content":"x"}`), "messages.0.role: Input should be 'user', 'assistant' or 'system'"},
		{"no role", messages(`{"content":"x"}`), "messages.0.role: Field required"},
		{"no content", messages(`{"role":"user"}`), "messages.0.content: Field required"},
		{"content a number", messages(`{"role":"user","content":3}`), "messages.0.content: Input should be a valid string or a valid list"},
		{"an id on a message", messages(`{"role":"user","content":"x","id":"msg_1"}`), "messages.0.id: Extra inputs are not permitted"},
		{"no object", messages(`"x"`), "messages.0: Input should be an object"},
		{"empty user string", messages(`{"role":"user","content":""}`), "messages.0: user messages must have non-empty content"},
		{"empty user list", messages(user()), "messages.0: user messages must have non-empty content"},
		{"blank user string", messages(`{"role":"user","content":" \n"}`), "messages.0.content: text content blocks must contain non-whitespace text"},
		{"empty assistant", messages(user(hi), assistant(), user(hi)), "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		{"empty assistant at the end", messages(user(hi), assistant()), ""},
		{"empty text", messages(user(hi, `{"type":"text","text":""}`)), "messages.0.content.1: text content blocks must be non-empty"},
		{"empty text of the assistant", messages(user(hi), assistant(`{"type":"text","text":""}`), user(hi)), "messages.1.content.0: text content blocks must be non-empty"},
		{"blank text", messages(user(`{"type":"text","text":" \t\n"}`)), "messages.0.content.0: text content blocks must contain non-whitespace text"},
		{"empty cached text", messages(user(`{"type":"text","cache_control":{"type":"ephemeral"},"text":""}`)), "messages.0.content.0.text: cache_control cannot be set for empty text blocks"},
		{"prefill", messages(user(hi), assistant(`{"type":"text","text":"The answer"}`)), ""},
		{"prefill with a space", messages(user(hi), assistant(`{"type":"text","text":"The answer "}`)), "messages: final assistant content cannot end with trailing whitespace"},
		{"prefill string with a space", messages(user(hi), `{"role":"assistant","content":"a\n"}`), "messages: final assistant content cannot end with trailing whitespace"},
		{"space at the end of an earlier one", messages(user(hi), assistant(`{"type":"text","text":"a "}`), user(hi)), ""},
		{"block without a type", messages(user(`{"text":"x"}`)), "messages.0.content.0.type: Field required"},
		{"unknown block", messages(user(`{"type":"audio"}`)), "messages.0.content.0: Input tag 'audio' found using 'type' does not match any of the expected tags: 'compaction',"},
		{"block no object", messages(user(`"x"`)), "messages.0.content.0: Input should be an object"},
		{"extra field of a text", messages(user(`{"type":"text","text":"x","annotations":{}}`)), "messages.0.content.0.text.annotations: Extra inputs are not permitted"},
		{"text missing", messages(user(`{"type":"text"}`)), "messages.0.content.0.text.text: Field required"},
		{"text a number", messages(user(`{"type":"text","text":1}`)), "messages.0.content.0.text.text: Input should be a valid string"},
		{"call by the user", messages(user(use("a"))), "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages"},
		{"result by the assistant", messages(user(hi), assistant(result("a"))), "messages.1.content.0: `tool_result` blocks can only be in `user` messages"},
		{"server tool blocks", messages(user(hi), assistant(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`, hi), user(hi)), ""},
	})
}

func TestSystemMessageRules(t *testing.T) {
	sys := `{"role":"system","content":"be brief"}`
	checkRules(t, []rule{
		{"after the user, at the end", messages(user(hi), sys), ""},
		{"after the user, before the assistant", messages(user(hi), sys, assistant(hi), user(hi)), ""},
		{"with an output_config only", messages(user(hi), `{"role":"system","content":[],"output_config":{"effort":"low"}}`), ""},
		{"first", messages(sys, user(hi)), `messages: first message must use the "user" role`},
		{"after the assistant", messages(user(hi), assistant(hi), sys, assistant(hi), user(hi)), "messages.2: a `system` message must immediately follow a user message"},
		{"twice", messages(user(hi), sys, sys), "messages.2: `system` messages must not follow each other"},
		{"before a user message", messages(user(hi), sys, user(hi)), "messages.1: a `system` message must be the last one or be followed by an assistant message"},
		{"an image in it", messages(user(hi), `{"role":"system","content":[{"type":"image","source":{"type":"url","url":"x"}}]}`), "messages.1.content.0: Input tag 'image'"},
		{"an older model", set(messages(user(hi), sys), "model", `"claude-sonnet-4-5"`), "messages.1.role: Input should be 'user' or 'assistant'"},
		{"the first model that takes it", set(messages(user(hi), sys), "model", `"claude-opus-4-8"`), ""},
		{"output_config of a user message", messages(`{"role":"user","content":"x","output_config":{}}`), "messages.0: clear_at and output_config are for `system` messages only"},
	})
}

func TestToolPairingRules(t *testing.T) {
	const orphan = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
	checkRules(t, []rule{
		{"a call and its result", messages(user(hi), assistant(hi, use("a")), user(result("a"))), ""},
		{"results in any order, a text after them", messages(user(hi), assistant(use("a"), use("b")), user(result("b"), result("a"), hi)), ""},
		{"a result without content", messages(user(hi), assistant(use("a")), user(`{"type":"tool_result","tool_use_id":"a"}`)), ""},
		{"a result that is an empty string", messages(user(hi), assistant(use("a")), user(`{"type":"tool_result","tool_use_id":"a","content":""}`)), ""},
		{"a result with an empty list", messages(user(hi), assistant(use("a")), user(`{"type":"tool_result","tool_use_id":"a","content":[]}`)), ""},
		{"no result", messages(user(hi), assistant(use("a")), user(hi)), orphan + "a. Each `tool_use` block must have a corresponding `tool_result` block in the next message."},
		{"no message after the call", messages(user(hi), assistant(use("a"))), orphan + "a."},
		{"one of two results", messages(user(hi), assistant(use("a"), use("b")), user(result("a"))), orphan + "b."},
		{"neither of two", messages(user(hi), assistant(use("a"), use("b")), user(hi)), orphan + "a, b."},
		{"result a message later", messages(user(hi), assistant(use("a")), user(hi), user(result("a"))), orphan + "a."},
		{"results split over two messages", messages(user(hi), assistant(use("a"), use("b")), user(result("a")), user(result("b"))), orphan + "b."},
		{"a text before the result", messages(user(hi), assistant(use("a")), user(hi, result("a"))), orphan + "a."},
		{"a system message between", messages(user(hi), assistant(use("a")), `{"role":"system","content":"x"}`, user(result("a"))), orphan + "a."},
		{"result without a call", messages(user(result("a"))), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."},
		{"result of an older call", messages(user(hi), assistant(use("a")), user(result("a")), assistant(hi), user(result("a"))), "messages.4.content.0: unexpected `tool_use_id` found"},
		{"two results", messages(user(hi), assistant(use("a")), user(result("a"), result("a"))), "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a"},
		{"an id twice in a message", messages(user(hi), assistant(use("a"), use("a")), user(result("a"))), "messages.1.content.1: `tool_use` ids must be unique"},
		{"an id twice in the conversation", messages(user(hi), assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a"))), "messages.3.content.0: `tool_use` ids must be unique"},
		{"id with a dot", messages(user(hi), assistant(use("a.b")), user(result("a.b"))), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
		{"input null", messages(user(hi), assistant(`{"type":"tool_use","id":"a","name":"t","input":null}`), user(result("a"))), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		{"input a string", messages(user(hi), assistant(`{"type":"tool_use","id":"a","name":"t","input":"{}"}`), user(result("a"))), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		{"input missing", messages(user(hi), assistant(`{"type":"tool_use","id":"a","name":"t"}`), user(result("a"))), "messages.1.content.0.tool_use.input: Field required"},
		{"name empty", messages(user(hi), assistant(`{"type":"tool_use","id":"a","name":"","input":{}}`), user(result("a"))), "messages.1.content.0.tool_use.name: String should have at least 1 character"},
		{"name of 201", messages(user(hi), assistant(`{"type":"tool_use","id":"a","name":"`+strings.Repeat("n", 201)+`","input":{}}`), user(result("a"))), "messages.1.content.0.tool_use.name: String should have at most 200 characters"},
	})
}

func TestToolResultRules(t *testing.T) {
	res := func(content string) string {
		return messages(user(hi), assistant(use("a")), user(`{"type":"tool_result","tool_use_id":"a",`+content+`}`))
	}
	ref := func(name string) string {
		return set(res(`"content":[{"type":"tool_reference","tool_name":"`+name+`"}]`), "tools", `[`+tool("known")+`,`+tool(strings.Repeat("k", 65))+`]`)
	}
	const at = "messages.2.content.0"
	checkRules(t, []rule{
		{"texts and an image", res(`"content":[` + hi + `,{"type":"image","source":{"type":"url","url":"https://x.example/i.png"}}]`), ""},
		{"an error of texts", res(`"is_error":true,"content":[` + hi + `]`), ""},
		{"an error with an image", res(`"is_error":true,"content":[{"type":"image","source":{"type":"url","url":"https://x.example/i.png"}}]`), at + ".tool_result: all content must be type `text` if `is_error` is true"},
		{"empty text in it", res(`"content":[{"type":"text","text":""}]`), at + ".content.0: text content blocks must be non-empty"},
		{"blank text in it", res(`"content":[{"type":"text","text":"\n"}]`), at + ".content.0: text content blocks must contain non-whitespace text"},
		{"MCP audio in it", res(`"content":[{"type":"audio","data":"","mimeType":"audio/wav"}]`), at + ".tool_result.content.0: Input tag 'audio' found using 'type' does not match any of the expected tags: 'browser_state', 'document', 'image', 'search_result', 'text', 'tool_reference'"},
		{"MCP resource link in it", res(`"content":[{"type":"resource_link","uri":"x"}]`), at + ".tool_result.content.0: Input tag 'resource_link'"},
		{"structuredContent beside it", res(`"content":"x","structuredContent":{}`), at + ".tool_result.structuredContent: Extra inputs are not permitted"},
		{"is_error a string", res(`"content":"x","is_error":"true"`), at + ".tool_result.is_error: Input should be a valid boolean"},
		{"known reference", ref("known"), ""},
		{"unknown reference", ref("gone"), at + ": Tool reference 'gone' not found in available tools"},
		{"reference of 65", ref(strings.Repeat("k", 65)), at + ".tool_result.content.0.tool_reference.tool_name: String should have at most 64 characters"},
	})
}

func TestCacheRules(t *testing.T) {
	cached := func(control string) string { return `{"type":"text","text":"hi","cache_control":` + control + `}` }
	short, hour := cached(`{"type":"ephemeral"}`), cached(`{"type":"ephemeral","ttl":"1h"}`)
	checkRules(t, []rule{
		{"four", messages(user(short, short, short, short)), ""},
		{"five", messages(user(short, short, short, short, short)), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"five all over the request", set(set(set(messages(user(hi), assistant(short, use("a")), user(`{"type":"tool_result","tool_use_id":"a","content":[`+short+`]}`)), "system", `[`+short+`]`), "cache_control", `{"type":"ephemeral"}`), "tools", `[{"name":"t","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"an hour before five minutes", messages(user(hour, short)), ""},
		{"an hour after five minutes", messages(user(short, hour)), "messages.0.content.1.text.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"},
		{"system counts before messages", set(messages(user(hour)), "system", `[`+short+`]`), "messages.0.content.0.text.cache_control.ttl: a ttl='1h'"},
		{"scope", messages(user(cached(`{"type":"ephemeral","scope":"global"}`))), ""},
		{"null", messages(user(cached(`null`))), ""},
		{"other type", messages(user(cached(`{"type":"persistent"}`))), "messages.0.content.0.text.cache_control.type: Input should be 'ephemeral'"},
		{"other ttl", messages(user(cached(`{"type":"ephemeral","ttl":"2h"}`))), "messages.0.content.0.text.cache_control.ephemeral.ttl: Input should be '5m' or '1h'"},
		{"no type", messages(user(cached(`{}`))), "messages.0.content.0.text.cache_control.type: Field required"},
		{"on a thought", messages(user(hi), assistant(strings.Replace(signed("x"), "{", `{"cache_control":{"type":"ephemeral"},`, 1), hi), user(hi)), "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"},
	})
}

func TestMediaRules(t *testing.T) {
	picture := func(w, h int) []byte {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 9, 9)), nil); err != nil {
		t.Fatal(err)
	}
	gif := "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
	webp := "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
	b64 := base64.StdEncoding.EncodeToString
	block := func(media, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`
	}
	img := func(media, data string) string { return messages(user(block(media, data))) }
	document := func(source string) string { return messages(user(`{"type":"document","source":` + source + `}`)) }
	fill := func(total int) string { // a PNG of so many bytes of base64
		data := picture(1, 1)
		return b64(append(data, make([]byte, total*3/4-len(data))...))
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = block("image/png", b64(picture(2001, 1)))
	}
	const at = "messages.0.content.0.image.source"
	checkRules(t, []rule{
		{"PNG", img("image/png", b64(picture(8000, 1))), ""},
		{"JPEG", img("image/jpeg", b64(photo.Bytes())), ""},
		{"GIF", img("image/gif", gif), ""},
		{"WebP", img("image/webp", webp), ""},
		{"other media type", img("image/bmp", gif), at + ".base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"},
		{"bytes of another type", img("image/png", b64(photo.Bytes())), at + ".base64: The image was specified using the image/png media type, but the image appears to be a image/jpeg image"},
		{"no image", img("image/png", b64([]byte("hello, world, hello"))), at + ".base64: Could not process image"},
		{"header only", img("image/png", b64(picture(1, 1)[:12])), at + ".base64: Could not process image"},
		{"empty", img("image/png", ""), at + ".base64: image cannot be empty"},
		{"not base64", img("image/png", "%%%%"), at + ".base64.data: Invalid base64 data"},
		{"base64 of a URL", img("image/png", "_-__"), at + ".base64.data: Invalid base64 data"},
		{"base64 cut", img("image/gif", gif[:len(gif)-1]), at + ".base64.data: Invalid base64 data"},
		{"base64 with line breaks", img("image/gif", gif[:8]+`\n`+gif[8:]), at + ".base64.data: Invalid base64 data"},
		{"a data URL", img("image/gif", "data:image/gif;base64,"+gif), at + ".base64.data: Invalid base64 data"},
		{"as large as it may be", img("image/png", fill(maxImageBase64)), ""},
		{"too large", img("image/png", fill(maxImageBase64+4)), at + ".base64: image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes"},
		{"too wide", img("image/png", b64(picture(8001, 1))), at + ".base64: At least one of the image dimensions exceed max allowed size: 8000 pixels"},
		{"twenty large ones", messages(user(many[:20]...)), ""},
		{"many large ones", messages(user(many...)), at + ".base64: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"},
		{"URL", messages(user(`{"type":"image","source":{"type":"url","url":"https://x.example/i.png"}}`)), ""},
		{"source without data", messages(user(`{"type":"image","source":{"type":"base64","media_type":"image/png"}}`)), at + ".base64.data: Field required"},
		{"MCP fields", messages(user(`{"type":"image","data":"x","mimeType":"image/png"}`)), "messages.0.content.0.image.data: Extra inputs are not permitted"},
		{"PDF", document(`{"type":"base64","media_type":"application/pdf","data":"` + b64([]byte("%PDF-1.7 and so on")) + `"}`), ""},
		{"no PDF", document(`{"type":"base64","media_type":"application/pdf","data":"` + b64([]byte("hello, world, hello")) + `"}`), "messages.0.content.0.document.source.base64: The PDF specified was not valid."},
		{"text document", document(`{"type":"text","media_type":"text/plain","data":"x"}`), ""},
		{"empty text document", document(`{"type":"text","media_type":"text/plain","data":""}`), "messages.0.content.0.document.source.text.data: String should have at least 1 character"},
		{"document of blocks", document(`{"type":"content","content":[` + hi + `]}`), ""},
	})
}

func checkRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, tt := range rules {
		t.Run(tt.name, func(t *testing.T) {
			m := NewModel(&Options{TB: t, AllowViolations: true, Turns: []Turn{Text("fine")}})
			r := post(t, m, tt.body)
			if tt.want == "" {
				if r.StatusCode != http.StatusOK || len(m.Violations()) != 0 {
					t.Fatalf("refused with %d %s", r.StatusCode, r.body)
				}
				return
			}
			want := "invalid_request_error: " + tt.want
			if got := r.errorText(t); r.StatusCode != http.StatusBadRequest || !strings.HasPrefix(got, want) {
				t.Fatalf("got %d %.400s\nwant 400 %s", r.StatusCode, got, want)
			}
			if v := m.Violations(); len(v) != 1 || !strings.HasPrefix(v[0].Error(), fmt.Sprintf("400 invalid_request_error: %s", tt.want)) {
				t.Errorf("violations: %v", v)
			}
			if m.Left() != 1 {
				t.Error("a refused request used up a turn")
			}
		})
	}
}

func TestListLimits(t *testing.T) {
	many := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	checkRules(t, []rule{
		{"output schema that a tool could not have", with("output_config", `{"format":{"type":"json_schema","schema":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`), ""},
		{"too many messages", with("messages", many(`{"role":"user","content":"x"}`, maxMessages+1)), "messages: List should have at most 100000 items"},
		{"too many blocks", with("messages", `[{"role":"user","content":`+many(hi, maxItems+1)+`}]`), "messages.0.content: List should have at most 200000 items"},
		{"a long wrong name", tools(tool(strings.Repeat("x.", 60)), `{"name":"y","type":"`+strings.Repeat("z", 10_000)+`"}`), "tools.0.custom.name: String should match"},
		{"a long wrong type", tools(`{"name":"y","type":"` + strings.Repeat("z", 10_000) + `"}`), "tools.0: Input tag 'zzz"},
	})
}

func TestModelsThatTakeNoSystemMessages(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-3-7-sonnet-20250219": true, "claude-2.1": true, "claude-sonnet-4-20250514": true, "claude-sonnet-4-5": true,
		"claude-haiku-4-5-20251001": true, "claude-opus-4-7": true, "claude-opus-4-8": false, "claude-opus-4-8-20260528": false,
		"claude-opus-4-10": false, "claude-opus-5-5": false, "claude-opus-40": false, "anything": false,
	} {
		if got := withoutMidSystem(model); got != want {
			t.Errorf("%s: %t, want %t", model, got, want)
		}
	}
}
