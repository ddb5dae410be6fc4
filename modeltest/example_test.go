package modeltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/tenon-sdk/tenon/modeltest"
)

// send posts a body to the Messages API that the client reaches, and returns the
// status of the answer and its body. A program has an SDK for this.
func send(ctx context.Context, c *http.Client, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.anthropic.com/v1/messages", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", "any")
	res, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// prompt is a request with one question.
func prompt(text string, stream bool) string {
	return fmt.Sprintf(`{"model": "claude", "max_tokens": 1000, "stream": %t, "messages": [{"role": "user", "content": %q}]}`, stream, text)
}

func ExampleNew() {
	model := modeltest.New(nil, modeltest.Text("Hello, too."))
	_, body, err := send(context.Background(), model.Client(), prompt("Hello", false))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(body)
	fmt.Println("It was asked:", model.Last().LastUserText())
	// Output:
	// {"id":"msg_000001","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hello, too."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":27,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3}}
	// It was asked: Hello
}

// What the real API would refuse is refused.
func ExampleModel_Violations() {
	model := modeltest.New(nil, modeltest.Text("never said"))
	body := `{"model": "claude", "max_tokens": 1000, "messages": [{"role": "user", "content": "Hello"}],
		"tools": [{"name": "read.file", "input_schema": {"type": "object"}}]}`
	status, _, err := send(context.Background(), model.Client(), body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status)
	for _, v := range model.Violations() {
		fmt.Println(v.Message)
	}
	// Output:
	// 400
	// tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'
}

// A Func sees the request that it answers.
func ExampleFunc() {
	model := modeltest.New(nil, modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		if r.Number() == 1 {
			return modeltest.Overloaded()
		}
		return modeltest.Text("You said: " + r.LastUserText())
	}))
	for range 2 {
		status, body, err := send(context.Background(), model.Client(), prompt("Hello", false))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(status, strings.Contains(body, "You said: Hello"))
	}
	// Output:
	// 529 false
	// 200 true
}

// A gate holds a stream, here to cancel it when its first words have arrived.
func ExampleGate() {
	gate := modeltest.NewGate()
	model := modeltest.New(nil, modeltest.Text("one two three").Fragments("one ", "two ", "three").After(2, modeltest.Hold(gate)))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-gate.Reached()
		cancel()
	}()
	_, body, err := send(ctx, model.Client(), prompt("Count", true))
	fmt.Println(strings.Contains(body, "two"), strings.Contains(body, "three"), errors.Is(err, context.Canceled))
	// Output: true false true
}

// Each conversation has a script of its own.
func ExampleNewModel() {
	model := modeltest.NewModel(&modeltest.Options{Script: func(key string) []modeltest.Turn {
		return []modeltest.Turn{modeltest.Text("Welcome, " + key), modeltest.Text("Bye, " + key)}
	}})
	for _, name := range []string{"Ada", "Bob", "Ada"} {
		_, body, err := send(context.Background(), model.Client(), prompt(name, false))
		if err != nil {
			log.Fatal(err)
		}
		var message struct{ Content []struct{ Text string } }
		if err := json.Unmarshal([]byte(body), &message); err != nil {
			log.Fatal(err)
		}
		fmt.Println(message.Content[0].Text)
	}
	// Output:
	// Welcome, Ada
	// Welcome, Bob
	// Bye, Ada
}

// The offline model makes the calls that the prompt spells out.
func ExampleOffline() {
	body := `{"model": "offline", "max_tokens": 1000,
		"tools": [{"name": "mcp__stock__lookup", "input_schema": {"type": "object"}}],
		"messages": [
			{"role": "user", "content": "@mcp__stock__lookup {\"sku\": \"AB-00017\"}"},
			{"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_000001_c1", "name": "mcp__stock__lookup", "input": {"sku": "AB-00017"}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_000001_c1", "content": "7 on shelf B3"}]}
		]}`
	_, answer, err := send(context.Background(), modeltest.Offline().Client(), body)
	if err != nil {
		log.Fatal(err)
	}
	var message struct{ Content []struct{ Text string } }
	if err := json.Unmarshal([]byte(answer), &message); err != nil {
		log.Fatal(err)
	}
	fmt.Println(message.Content[0].Text)
	// Output:
	// Made offline, by no model: the calls that the prompt spells out were made as they stand (1 of 1).
	//
	// 1. mcp__stock__lookup {"sku": "AB-00017"}
	// 7 on shelf B3
}
