package goschema

import (
	"reflect"
	"slices"
	"strings"
)

// maxFill is how deep Filled looks. A value that refers to itself, which alone is
// deeper, encoding/json does not write at all.
const maxFill = 1000

// Filled returns v with an empty slice or map in place of each nil one that
// encoding/json would write as null. It changes nothing that v refers to: what it
// fills is copied. Values that encode themselves stay as they are.
func Filled(v any) any {
	if v == nil {
		return nil
	}
	value := reflect.ValueOf(v)
	if !lacks(value, maxFill) {
		return v
	}
	return fill(value, maxFill).Interface()
}

// lacks reports whether there is a nil slice or map in v.
func lacks(v reflect.Value, depth int) bool {
	if depth == 0 || !mayLack(v.Type()) {
		return false
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return true
		}
		for i := 0; mayLack(v.Type().Elem()) && i < v.Len(); i++ {
			if lacks(v.Index(i), depth-1) {
				return true
			}
		}
	case reflect.Map:
		if v.IsNil() {
			return true
		}
		for entries := v.MapRange(); mayLack(v.Type().Elem()) && entries.Next(); {
			if lacks(entries.Value(), depth-1) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if written(v, i) && lacks(v.Field(i), depth-1) {
				return true
			}
		}
	default:
		return !v.IsNil() && lacks(v.Elem(), depth-1)
	}
	return false
}

// mayLack reports whether values of t can be, or hold, nil slices and maps that
// encoding/json finds.
func mayLack(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Pointer, reflect.Interface:
		return !has(t, jsonMarshaler) && !has(t, textMarshaler)
	}
	return false
}

// written reports whether encoding/json writes field i of v. One with omitzero is
// not if it is zero, and must stay so: an empty slice is not.
func written(v reflect.Value, i int) bool {
	f := v.Type().Field(i)
	if !f.IsExported() && (!f.Anonymous || f.Type.Kind() != reflect.Struct) {
		return false
	}
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" && options == "" {
		return false
	}
	return !v.Field(i).IsZero() || !slices.Contains(strings.Split(options, ","), "omitzero")
}

// fill is v with what it lacks.
func fill(v reflect.Value, depth int) reflect.Value {
	if !lacks(v, depth) {
		return v
	}
	switch v.Kind() {
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(fill(v.Index(i), depth-1))
		}
		return out
	case reflect.Map:
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			out.SetMapIndex(entries.Key(), fill(entries.Value(), depth-1))
		}
		return out
	case reflect.Pointer:
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(fill(v.Elem(), depth-1))
		return out.Convert(v.Type())
	case reflect.Interface:
		return fill(v.Elem(), depth-1)
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	fillInPlace(out, depth)
	return out
}

// fillInPlace fills an array or a struct that is a copy already.
func fillInPlace(v reflect.Value, depth int) {
	if v.Kind() == reflect.Array {
		for i := range v.Len() {
			v.Index(i).Set(fill(v.Index(i), depth-1))
		}
		return
	}
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case !written(v, i):
		case f.CanSet():
			f.Set(fill(f, depth-1))
		default: // an embedded struct that is not exported, whose exported fields can be set
			fillInPlace(f, depth-1)
		}
	}
}
