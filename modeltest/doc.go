// Package modeltest is the Messages API of a model that does what a script says:
// for tests of everything that talks to Claude, and for trying things out without
// a key.
//
//	model := modeltest.New(t,
//		modeltest.ToolUse("mcp__stock__lookup", `{"sku": "AB-00017"}`),
//		modeltest.Text("There are 7 left."),
//	)
//	engine := native.New(&native.Options{APIKey: "any", HTTPClient: model.Client()})
//
// A [Model] is an [http.RoundTripper], so that no socket is needed, and an
// [http.Handler]; [Model.Serve] puts it on a loopback port, for programs that are
// told where the API is by ANTHROPIC_BASE_URL. It answers
//
//   - POST /v1/messages, streamed or not,
//   - POST /v1/messages/count_tokens,
//   - GET /v1/models and /v1/models/{name}, where any name is a model,
//   - HEAD /,
//
// and anything else with the API's 404. [Offline] is a model that needs no script.
//
// # Scripts
//
// A script is a list of turns: a [Part] (one text, one tool call), several of
// them ([Say]), an error ([Fail], [RateLimited], [Overloaded]), or a [Func] that
// decides when the request is there. Each request takes the next one; a request
// that is refused, or that only counts tokens, takes none. A retry is a request
// like any other. When the script has no turn left, the answer is a 400 that says
// so. Many conversations at once have a script each through [Options.Script].
//
// Streams have the event sequences of the real API: message_start, ping, the
// blocks with their deltas in several fragments, message_delta, message_stop.
// [Break] puts an error event into them and [Cut] breaks the connection; [Hold]
// stops a stream at a [Gate] until the test opens it, so that a test can cancel
// in mid-stream without sleeping. Those go between blocks, or with [Part.After]
// into the middle of one.
//
// Ids are counted: msg_000001, toolu_000001, req_000001. Token counts that a
// script does not set are estimated as a quarter of the bytes. What a prompt cache
// would have read and written is told by the requests so far: a prefix counts as
// known when an earlier request had the same bytes up to a cache_control at most
// 20 blocks back. Nothing expires, and there is no smallest size.
//
// # What is refused
//
// The model is strict, so that a test that passes means something. What the real
// API refuses is refused here with the same status and type, and a message in its
// manner that names the path of what is wrong, such as
//
//	tools.3.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'
//
// Refused requests are kept as [Violation] values, and fail the test that the
// model was made for. These are the rules:
//
//   - Headers: x-api-key or a bearer token (401), anthropic-version 2023-06-01,
//     content-type application/json.
//   - Body: at most 32 MiB (413); JSON, with field names taken as they are, nested
//     at most 512 levels, in valid UTF-8 without lone surrogates; no field that the
//     API does not know, at the top, in messages, in blocks and in tools; fields that
//     are in beta (context_management, mcp_servers, output_format, fallbacks, ...)
//     only with a beta header.
//   - Settings: model and max_tokens (at least 1) are there; temperature, top_p,
//     top_k, stop_sequences, service_tier, metadata and output_config have values that
//     the API takes; a thinking budget is at least 1024 and less than max_tokens, and
//     thinking goes with no temperature, top_k or forced tool.
//   - Tools: names match ^[a-zA-Z0-9_-]{1,128}$ and are unique; at least one is not
//     deferred; none is both deferred and cached; tool_choice names one of them.
//   - Schemas of tools: the root has type object and no oneOf, anyOf or allOf;
//     property keys match ^[a-zA-Z0-9_.-]{1,64}$; it is valid JSON Schema 2020-12,
//     whatever $schema says, and all its references lead somewhere inside it. At most
//     1 MiB and 128 levels. Objects of strict tools and of output schemas refuse
//     additional properties.
//   - Messages: the first is the user's; none is empty, apart from a last one of the
//     assistant; texts are not empty or blank; the last message of the assistant does
//     not end in white space, nor any in a thought; system messages stand after a
//     user's, and before an assistant's or at the end, and only for models that take
//     them. Several messages of one role in a row are fine.
//   - Tool calls: ids match ^[a-zA-Z0-9_-]+$ and are unique; each is answered at the
//     beginning of the very next message, once; nothing else is answered; an error
//     consists of texts; tool references name a tool of the request, in at most 64
//     characters.
//   - Thinking comes back with the signature it was given ([Signature]), and all of
//     it while the tool calls after it are at work.
//   - Images are JPEG, PNG, GIF or WebP and what they say they are, in at most 5 MiB
//     of base64, with at most 8000 pixels a side (2000 when there are more than 20);
//     PDF documents begin like one.
//   - At most four cache_control blocks, none of an hour after one of five minutes.
//
// Where it is not known how far the real API goes, the strict reading is taken:
// property keys are checked at every level, results of parallel calls have to be in
// one message, and texts inside tool results have to be more than white space. What
// depends on a model's limits (its largest max_tokens, its context window, whether
// it takes a prefilled answer) is not checked.
package modeltest
