package schemaguard

import (
	"math/big"
	"testing"
)

var decimals = []string{
	"0", "-0", "0.0", "0e5", "1", "-1", "1.0", "10e-1", "0.1", "1e-1", "12.50", "1250e-2", "100", "1e2", "-2.5",
	"9007199254740993", "9007199254740992", "12345678901234567890123", "0.30000000000000004", "1e20", "100000000000000000001",
	"3", "7", "0.01", "0.07", "1e-20", "99999999999999999999999999e-5",
}

func rat(t *testing.T, s string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no number", s)
	}
	return r
}

func TestDecimalsAreExact(t *testing.T) {
	for _, a := range decimals {
		x, rx := parseDecimal([]byte(a)), rat(t, a)
		if got := x.isInt(); got != rx.IsInt() {
			t.Errorf("%s is an integer: %v", a, got)
		}
		if got := isInteger([]byte(a)); got != rx.IsInt() {
			t.Errorf("isInteger(%s): %v", a, got)
		}
		if got := rat(t, x.String()); got.Cmp(rx) != 0 {
			t.Errorf("%s prints as %s", a, x)
		}
		if got := ratDecimal(rx); *got != x {
			t.Errorf("%s: by way of a fraction %v, want %v", a, got, x)
		}
		for _, b := range decimals {
			y, ry := parseDecimal([]byte(b)), rat(t, b)
			if got, want := x.cmp(y), rx.Cmp(ry); got != want {
				t.Errorf("cmp(%s, %s) = %d, want %d", a, b, got, want)
			}
			if got, want := x == y, rx.Cmp(ry) == 0; got != want {
				t.Errorf("%s == %s: %v", a, b, got)
			}
			if ry.Sign() > 0 {
				if got, want := x.multipleOf(y), new(big.Rat).Quo(rx, ry).IsInt(); got != want {
					t.Errorf("%s is a multiple of %s: %v", a, b, got)
				}
			}
		}
	}
}

func TestBigNumbersKeepTheirPrecision(t *testing.T) {
	s := mustNew(t, `{"properties":{"id":{"const":9007199254740993},"max":{"maximum":9007199254740992},"unique":{"uniqueItems":true}}}`)
	for value, valid := range map[string]bool{
		`{"id":9007199254740993}`:                        true,
		`{"id":9007199254740992}`:                        false,
		`{"id":9007199254740993.0}`:                      true,
		`{"max":9007199254740993}`:                       false,
		`{"max":9007199254740992.0000000000000000001}`:   false,
		`{"unique":[9007199254740993,9007199254740992]}`: true,
		`{"unique":[1,1.0]}`:                             false,
	} {
		if err := s.Validate([]byte(value), Limits{}); (err == nil) != valid {
			t.Errorf("%s: got %v, want valid %v", value, err, valid)
		}
	}
}
