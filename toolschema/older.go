package toolschema

import "slices"

// modernize rewrites the forms of older drafts and of OpenAPI.
func (m *mender) modernize(o *object) {
	m.exclusive(o, "exclusiveMinimum", "minimum")
	m.exclusive(o, "exclusiveMaximum", "maximum")
	m.tuple(o)
	m.dependencies(o)
}

// exclusive rewrites {"minimum": 1, "exclusiveMinimum": true} to {"exclusiveMinimum": 1}.
func (m *mender) exclusive(o *object, exclusive, inclusive string) {
	flag, ok := o.get(exclusive)
	b, isFlag := flag.(bool)
	if !ok || !isFlag {
		return
	}
	m.mend(exclusive, "dialect", "a boolean is written as draft 2020-12 has it")
	o.remove(exclusive)
	if bound, has := o.get(inclusive); has && b {
		o.remove(inclusive)
		o.set(exclusive, bound)
	}
}

// tuple rewrites a list under items to prefixItems.
func (m *mender) tuple(o *object) {
	list, isList := o.list("items")
	rest, hasRest := o.get("additionalItems")
	if hasRest {
		o.remove("additionalItems")
	}
	if !isList {
		if hasRest {
			m.mend("additionalItems", "dialect", "means nothing here and is taken out")
		}
		return
	}
	m.mend("items", "dialect", "a list is written as prefixItems")
	o.remove("items")
	if _, has := o.get("prefixItems"); !has && len(list) > 0 {
		o.set("prefixItems", list)
	}
	if hasRest {
		o.set("items", rest)
	}
}

// dependencies rewrites dependencies to dependentRequired and dependentSchemas.
func (m *mender) dependencies(o *object) {
	v, ok := o.get("dependencies")
	if !ok {
		return
	}
	o.remove("dependencies")
	deps, isObject := v.(*object)
	if !isObject {
		m.loosen("dependencies", "keyword", "is no object and is taken out")
		return
	}
	m.mend("dependencies", "dialect", "written as dependentRequired and dependentSchemas")
	m.spend(len(deps.members))
	for _, d := range deps.members {
		key := "dependentSchemas"
		switch d.value.(type) {
		case []any, string:
			key = "dependentRequired"
		}
		into := o.object(key)
		if into == nil {
			into = &object{}
			o.set(key, into)
		}
		if _, has := into.get(d.key); !has {
			into.set(d.key, d.value)
		}
	}
}

// liftRequired rewrites "required": true of a property, a form of draft-03, to an element of its
// parent's list.
func (m *mender) liftRequired(o *object) {
	props := o.object("properties")
	if props == nil {
		return
	}
	var lifted []any
	m.spend(len(props.members))
	for _, p := range props.members {
		sub, ok := p.value.(*object)
		if !ok {
			continue
		}
		flag, has := sub.get("required")
		b, isFlag := flag.(bool)
		if !has || !isFlag {
			continue
		}
		sub.remove("required")
		m.push("properties", p.key)
		m.mend("required", "dialect", "a boolean is written into the list of what is required")
		m.pop("properties", p.key)
		if b {
			lifted = append(lifted, p.key)
		}
	}
	if len(lifted) == 0 {
		return
	}
	list, ok := o.list("required")
	if s, isText := o.text("required"), o.text("required") != ""; !ok && isText {
		list = []any{s}
	}
	list = slices.Clone(list)
	there := make(map[string]bool, len(list))
	for _, e := range list {
		if s, ok := e.(string); ok {
			there[s] = true
		}
	}
	for _, k := range lifted {
		if s, _ := k.(string); !there[s] { // the keys of an object are different
			list = append(list, k)
		}
	}
	o.set("required", list)
}
