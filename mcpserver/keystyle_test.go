package mcpserver_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// In Go a result's members have one kind of key, that of JSON: what a handler encodes from a map
// and what it encodes from a struct is accepted alike. // R29
func TestResultsFromMapsAndStructsAreAlike(t *testing.T) {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	results := map[string]any{
		"map": map[string]any{"content": []any{map[string]any{"type": "text", "text": "hello"}}},
		"struct": struct {
			Content []block `json:"content"`
		}{[]block{{"text", "hello"}}},
	}
	s := mcpserver.New("alike", nil)
	for name, result := range results {
		err := s.AddRawTool(&mcpserver.Tool{Name: name}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.Marshal(result)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range results {
		r, err := s.CallTool(t.Context(), name, nil)
		if err != nil || r.IsError || r.Text() != "hello" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
