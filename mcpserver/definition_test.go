package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func TestDefinition(t *testing.T) {
	type in struct {
		N int `json:"n"`
	}
	tool := &Tool{Name: "double"}
	d := Define(tool, func(_ context.Context, v in) (int, error) { return 2 * v.N, nil })
	tool.Name = "changed" // has no effect: the definition has its own copy
	raw := DefineRaw(&Tool{Name: "echo"}, func(_ context.Context, args json.RawMessage) (*Result, error) { return Text(string(args)), nil })
	for _, s := range []*Server{New("a", nil), New("b", nil)} {
		for _, d := range []Definition{d, raw} {
			if err := d.AddTo(s); err != nil {
				t.Fatal(err)
			}
		}
		res, err := s.CallTool(t.Context(), "double", json.RawMessage(`{"n":21}`))
		if err != nil || res.IsError || res.Text() != "42" {
			t.Errorf("double: %+v, %v", res, err)
		}
		if res, err := s.CallTool(t.Context(), "echo", json.RawMessage(`{}`)); err != nil || res.Text() != "{}" {
			t.Errorf("echo: %+v, %v", res, err)
		}
	}
	if d.Name() != "double" {
		t.Errorf("name %q", d.Name())
	}
}

func TestBadDefinitions(t *testing.T) {
	type out struct{ C chan int }
	for want, d := range map[string]Definition{
		"empty":   {},
		"nil":     DefineRaw(nil, func(context.Context, json.RawMessage) (*Result, error) { return nil, nil }),
		"handler": DefineRaw(&Tool{Name: "x"}, nil),
		"chan":    Define(&Tool{Name: "x"}, func(context.Context, struct{}) (out, error) { return out{}, nil }),
	} {
		s := New("s", nil)
		if err := d.AddTo(s); err == nil || !strings.Contains(err.Error(), want) || len(s.Rejected()) != 1 {
			t.Errorf("%s: got %v, %d rejected", want, err, len(s.Rejected()))
		}
	}
}
