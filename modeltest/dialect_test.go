package modeltest

import (
	"fmt"
	"strings"
	"testing"
)

func TestReferencesOfASchema(t *testing.T) {
	defs := `"$defs":{"a":{"$anchor":"here"},"b/c~d":{},"l":{"anyOf":[{},{"$dynamicAnchor":"there"}]},"u":{"$id":"https://x.example/u.json"},"é x":{}}`
	for ref, want := range map[string]bool{
		"#": true, "": true, "#/$defs/a": true, "#/$defs/b~1c~0d": true, "#/$defs/l/anyOf/1": true, "#here": true, "#there": true,
		"https://x.example/u.json": true, "https://x.example/u.json#/x": true, "#/$defs/%C3%A9%20x": true,
		"#/$defs/b": false, "#/$defs/l/anyOf/2": false, "#/$defs/l/anyOf/x": false, "#/$defs/a/$anchor/x": false, "#nowhere": false,
		"https://x.example/other.json": false, "other.json": false, "#/%zz": false, "/etc/hostname": false, "#/components/schemas/X": false,
	} {
		schema := fmt.Sprintf(`{"type":"object",%s,"properties":{"p":{"items":{"$ref":%q}}}}`, defs, ref)
		v := checkSchema([]byte(schema))
		if got := v.msg == ""; got != want {
			t.Errorf("%q: %+v, want it to lead somewhere: %t", ref, v, want)
		}
		if !want && !strings.Contains(v.msg, fmt.Sprintf("$ref %q leads nowhere in the schema", ref)) {
			t.Errorf("%q: %s", ref, v.msg)
		}
	}
}

func TestReferencesInValuesAreNone(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"const":{"$ref":"#/gone"}},"b":{"enum":[{"$ref":"#/gone"}]},"c":{"default":{"$ref":"#/gone"}}}}`,
		`{"type":"object","$defs":{"$ref":{"type":"string"}}}`,
	} {
		if v := checkSchema([]byte(schema)); v.msg != "" {
			t.Errorf("%s: %s", schema, v.msg)
		}
	}
}

func TestLargeSchemasAreCheckedInProportion(t *testing.T) {
	var props, chain []string
	for i := range 15_000 {
		props = append(props, fmt.Sprintf(`"k%d":{"type":"string"}`, i))
		chain = append(chain, fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, (i+1)%15_000))
	}
	for _, schema := range []string{
		`{"type":"object","properties":{` + strings.Join(props, ",") + `}}`,
		`{"type":"object","$ref":"#/$defs/d0","$defs":{` + strings.Join(chain, ",") + `}}`,
	} {
		if v := checkSchema([]byte(schema)); v.msg != "" {
			t.Error(v.msg)
		}
	}
}

func TestVerdictsAreRemembered(t *testing.T) {
	var c schemaCache
	good, bad := []byte(`{"type":"object"}`), []byte(`{"type":"object","properties":{"a b":{}}}`)
	for range 3 {
		if v := c.check(good); v.msg != "" || v.root != nil || !v.open {
			t.Errorf("good: %+v", v)
		}
		if v := c.check(bad); v.path != ".properties" || v.msg == "" {
			t.Errorf("bad: %+v", v)
		}
	}
	if len(c.seen) != 2 {
		t.Errorf("%d remembered, want 2", len(c.seen))
	}
	c.size = maxSchemaCache + 1
	c.check([]byte(`{"type":"object","title":"new"}`))
	if len(c.seen) != 1 {
		t.Errorf("%d remembered after the limit, want 1", len(c.seen))
	}
}
