package schemaguard

import (
	"encoding/json"
	"testing"
)

func TestFill(t *testing.T) {
	s := mustNew(t, `{"type":"object","properties":{
		"limit":{"type":"integer","default":10},
		"unit":{"$ref":"#/$defs/unit"},
		"page":{"$ref":"#/$defs/page"},
		"rows":{"type":"array","items":{"$ref":"#/$defs/page"}},
		"off":{"type":["boolean","null"],"default":false}},
		"required":["limit"],
		"$defs":{"unit":{"type":"string"},"page":{"type":"object","properties":{"size":{"type":"integer","default":20},"at":{"type":"integer"}}}}}`)
	for value, want := range map[string]string{
		`{}`:                                     `{"limit":10,"off":false}`,
		`{"limit":3,"off":null}`:                 `{"limit":3,"off":null}`,
		` { "limit" : 3, "off":true }`:           ` { "limit" : 3, "off":true }`,
		`{"page":{"at":1},"limit":1,"off":true}`: `{"limit":1,"off":true,"page":{"at":1,"size":20}}`,
		`{"rows":[{},{"size":1}],"off":true}`:    `{"limit":10,"off":true,"rows":[{"size":20},{"size":1}]}`,
	} {
		got, err := s.Fill(json.RawMessage(value), Limits{})
		if err != nil || string(got) != want {
			t.Errorf("Fill(%s) = %s, %v; want %s", value, got, err, want)
		}
	}
	if _, err := s.Fill(json.RawMessage(`{"limit":"x"}`), Limits{}); err == nil {
		t.Error("a wrong value is valid")
	}
	if _, err := s.Fill(json.RawMessage(`{`), Limits{}); err == nil {
		t.Error("what is no JSON is valid")
	}
}
