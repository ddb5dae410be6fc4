package claudecode

import (
	"bytes"
	"encoding/json"
	"iter"
	"math/big"
	"reflect"
)

// maxSafeInteger is the greatest integer that a float64 tells from its neighbours. The CLI reads the
// inputs of tool calls into JavaScript numbers, which are float64.
const maxSafeInteger = 1<<53 - 1

// numbers returns the numbers in JSON. It ends where the JSON is invalid.
func numbers(raw json.RawMessage) iter.Seq[json.Number] {
	return func(yield func(json.Number) bool) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		for {
			token, err := d.Token()
			if err != nil {
				return
			}
			if n, ok := token.(json.Number); ok && !yield(n) {
				return
			}
		}
	}
}

// allowsNumbers reports whether a schema names a type of numbers, or names no members at all.
func allowsNumbers(schema json.RawMessage) bool {
	return bytes.Contains(schema, []byte(`"integer"`)) || bytes.Contains(schema, []byte(`"number"`)) || !bytes.Contains(schema, []byte(`"properties"`))
}

// isUnsafe reports whether a number is an integer that another one is rounded to.
func isUnsafe(n json.Number) bool {
	f, err := n.Float64()
	return err == nil && (f > maxSafeInteger || f < -maxSafeInteger)
}

// unsafeInteger returns the first number in JSON that the CLI may have rounded, or "".
func unsafeInteger(raw json.RawMessage) string {
	for n := range numbers(raw) {
		if isUnsafe(n) {
			return n.String()
		}
	}
	return ""
}

// passesOn reports whether updated has an unsafe integer of input: callbacks pass on what they get,
// which the CLI may have rounded.
func passesOn(updated, input json.RawMessage) bool {
	got := map[string]bool{}
	for n := range numbers(input) {
		if !isUnsafe(n) {
			continue
		}
		got[exact(n)] = true
		if f, err := n.Float64(); err == nil { // as a callback reads it that decodes into float64
			got[new(big.Rat).SetFloat64(f).String()] = true
		}
	}
	for n := range numbers(updated) {
		if isUnsafe(n) && got[exact(n)] {
			return true
		}
	}
	return false
}

// maxExact is the length from which exact returns a number as it is: exponents make small texts large.
const maxExact = 400

// exact returns the value of a number in a form that does not depend on how it is written.
func exact(n json.Number) string {
	if len(n) > maxExact {
		return n.String()
	}
	if r, ok := new(big.Rat).SetString(n.String()); ok {
		return r.String()
	}
	return n.String()
}

// isLossless reports whether JSON keeps its numbers, as they are written, when it is read into float64.
func isLossless(raw json.RawMessage) bool {
	for n := range numbers(raw) {
		f, err := n.Float64()
		if err != nil {
			return false
		}
		if text, err := json.Marshal(f); err != nil || string(text) != n.String() {
			return false
		}
	}
	return json.Valid(raw)
}

// sameRounded reports whether two texts are the same JSON once their numbers are float64.
func sameRounded(a, b json.RawMessage) bool { return equalJSON(a, b, false) }

// sameExact reports whether two texts are the same JSON with the same digits.
func sameExact(a, b json.RawMessage) bool { return equalJSON(a, b, true) }

func equalJSON(a, b json.RawMessage, exact bool) bool {
	var values [2]any
	for i, raw := range []json.RawMessage{a, b} {
		d := json.NewDecoder(bytes.NewReader(raw))
		if exact {
			d.UseNumber()
		}
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
