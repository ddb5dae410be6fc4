package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// accepted is what the user entered for the question under key, nil if nothing was.
func accepted(responses mcp.InputResponseMap, key string) map[string]any {
	answer, ok := responses[key].(*mcp.ElicitResult)
	if !ok || answer.Action != "accept" {
		return nil
	}
	return answer.Content
}

func sampled(responses mcp.InputResponseMap, key string) (string, bool) {
	answer, ok := responses[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || len(answer.Content) == 0 {
		return "", false
	}
	return textOf(answer.Content[0]), true
}

func roots(responses mcp.InputResponseMap, key string) ([]*mcp.Root, bool) {
	answer, ok := responses[key].(*mcp.ListRootsResult)
	if !ok {
		return nil, false
	}
	return answer.Roots, true
}

// asks is a result that asks for input.
func asks(state string, requests mcp.InputRequestMap) (*mcpserver.Result, error) {
	return &mcpserver.Result{InputRequests: requests, RequestState: state}, nil
}

// addRoundTools adds the tools of the multi-round-trip scenarios. They ask by
// their result, which the scenarios name the keys of; a handler that need not
// choose the keys asks through its Request, as those in asking.go do.
func addRoundTools(s *mcpserver.Server) error {
	const prefix = "test_input_required_result_"
	return add(s, []tool{
		{mcpserver.Tool{Name: prefix + "elicitation", Description: "Asks for a name"}, asksName},
		{mcpserver.Tool{Name: prefix + "sampling", Description: "Asks the client's model"}, asksModel},
		{mcpserver.Tool{Name: prefix + "list_roots", Description: "Asks for the client's roots"}, asksRoots},
		{mcpserver.Tool{Name: prefix + "request_state", Description: "Carries a state"}, confirms},
		{mcpserver.Tool{Name: prefix + "tampered_state", Description: "Carries a state that nobody may change"}, confirms},
		{mcpserver.Tool{Name: prefix + "multiple_inputs", Description: "Asks for three things at once"}, asksThree},
		{mcpserver.Tool{Name: prefix + "multi_round", Description: "Asks twice"}, asksTwice},
		{mcpserver.Tool{Name: prefix + "capabilities", Description: "Asks for what the client can give"}, asksWhatItCan},
	})
}

func asksName(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	name, _ := accepted(mcpserver.RequestFrom(ctx).InputResponses, "user_name")["name"].(string)
	if name == "" {
		return asks("", mcp.InputRequestMap{"user_name": question("What is your name?", "name", "string")})
	}
	return mcpserver.Text("Hello, " + name + "!"), nil
}

func asksModel(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	answer, ok := sampled(mcpserver.RequestFrom(ctx).InputResponses, "capital_question")
	if !ok {
		return asks("", mcp.InputRequestMap{"capital_question": sampling("What is the capital of France?")})
	}
	return mcpserver.Text("Sampling response: " + answer), nil
}

func asksRoots(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	found, ok := roots(mcpserver.RequestFrom(ctx).InputResponses, "client_roots")
	if !ok {
		return asks("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
	}
	uris := make([]string, len(found))
	for i, r := range found {
		uris[i] = r.URI
	}
	return mcpserver.Text(fmt.Sprintf("Client exposed %d root(s): %s", len(found), strings.Join(uris, ", "))), nil
}

// confirms carries a state to the second round. That a state comes back as it
// went out is the server's concern, not the handler's: another never gets here.
func confirms(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	const state = "waiting for the confirmation"
	r := mcpserver.RequestFrom(ctx)
	if r.RequestState != state || accepted(r.InputResponses, "confirm") == nil {
		return asks(state, mcp.InputRequestMap{"confirm": question("Please confirm", "ok", "boolean")})
	}
	return mcpserver.Text("state-ok: requestState received and confirmation accepted"), nil
}

func asksThree(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	responses := mcpserver.RequestFrom(ctx).InputResponses
	name, _ := accepted(responses, "user_name")["name"].(string)
	greeting, greeted := sampled(responses, "greeting")
	found, listed := roots(responses, "client_roots")
	if name == "" || !greeted || !listed {
		return asks("three", mcp.InputRequestMap{
			"user_name":    question("What is your name?", "name", "string"),
			"greeting":     sampling("Generate a greeting"),
			"client_roots": &mcp.ListRootsParams{},
		})
	}
	return mcpserver.Text(fmt.Sprintf("%s %s: %d root(s) visible", greeting, name, len(found))), nil
}

func asksTwice(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	const first, second = "asked for the name", "asked for the color of "
	r := mcpserver.RequestFrom(ctx)
	name, colored := strings.CutPrefix(r.RequestState, second)
	switch {
	case colored:
		color, _ := accepted(r.InputResponses, "step2")["color"].(string)
		return mcpserver.Text(fmt.Sprintf("Multi-round complete: %s likes %s", name, color)), nil
	case r.RequestState == first:
		name, _ := accepted(r.InputResponses, "step1")["name"].(string)
		return asks(second+name, mcp.InputRequestMap{"step2": question("Step 2: What is your favorite color?", "color", "string")})
	}
	return asks(first, mcp.InputRequestMap{"step1": question("Step 1: What is your name?", "name", "string")})
}

func asksWhatItCan(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	r := mcpserver.RequestFrom(ctx)
	if len(r.InputResponses) > 0 {
		return mcpserver.Text("Capability-aware input requests fulfilled"), nil
	}
	requests := mcp.InputRequestMap{}
	if caps := r.ClientCapabilities; caps != nil {
		if caps.Elicitation != nil {
			requests["user_name"] = question("What is your name?", "name", "string")
		}
		if caps.Sampling != nil {
			requests["greeting"] = sampling("Generate a short greeting")
		}
		if caps.RootsV2 != nil {
			requests["client_roots"] = &mcp.ListRootsParams{}
		}
	}
	if len(requests) == 0 {
		return mcpserver.Text("The client can give nothing"), nil
	}
	return asks("", requests)
}
