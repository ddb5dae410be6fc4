package schemaguard

import (
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// A decimal is a JSON number, exactly: digits × 10^exp. The digits have no
// leading and no trailing zeros, so two decimals are equal exactly when their
// fields are; zero has no digits. Numbers with exponents in the billions, which
// would take gigabytes as a big.Int, cost no more than their text.
type decimal struct {
	neg    bool
	digits string
	exp    int64
}

// maxExp bounds exponents. Beyond it all numbers of one sign count as equal in
// size, which no bound of a schema can tell apart (see checkNumbers).
const maxExp = 1 << 40

// parseDecimal reads a valid JSON number.
func parseDecimal(text []byte) decimal {
	var d decimal
	if len(text) > 0 && text[0] == '-' {
		d.neg = true
		text = text[1:]
	}
	mantissa := text
	for i, c := range text {
		if c == 'e' || c == 'E' {
			mantissa = text[:i]
			d.exp = parseExp(text[i+1:])
			break
		}
	}
	var digits string
	if dot := strings.IndexByte(string(mantissa), '.'); dot < 0 {
		digits = string(mantissa)
	} else {
		digits = string(mantissa[:dot]) + string(mantissa[dot+1:])
		d.exp -= int64(len(mantissa) - dot - 1)
	}
	digits = strings.TrimLeft(digits, "0")
	d.digits = strings.TrimRight(digits, "0")
	d.exp += int64(len(digits) - len(d.digits))
	if d.digits == "" {
		return decimal{}
	}
	return d
}

func parseExp(text []byte) int64 {
	neg := false
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		neg = text[0] == '-'
		text = text[1:]
	}
	var n int64
	for _, c := range text {
		if n = n*10 + int64(c-'0'); n > maxExp {
			n = maxExp
			break
		}
	}
	if neg {
		return -n
	}
	return n
}

// isInt reports whether d is an integer; 1.0 and 10e-1 are.
func (d decimal) isInt() bool { return d.exp >= 0 }

// magnitude is the position of the first digit: d is in [10^(m-1), 10^m).
func (d decimal) magnitude() int64 { return d.exp + int64(len(d.digits)) }

// cmp compares exactly, in time linear in the digits.
func (d decimal) cmp(e decimal) int {
	if d == e {
		return 0
	}
	switch {
	case d.digits == "":
		return sign(!e.neg, -1)
	case e.digits == "":
		return sign(!d.neg, 1)
	case d.neg != e.neg:
		return sign(!d.neg, 1)
	}
	greater := strings.Compare(d.digits, e.digits) // as fractions: both begin with a digit that is not 0
	if dm, em := d.magnitude(), e.magnitude(); dm != em {
		greater = sign(dm > em, 1)
	}
	return sign(!d.neg, greater)
}

// sign returns v, or -v when positive is false.
func sign(positive bool, v int) int {
	if positive {
		return v
	}
	return -v
}

// multipleOf reports whether d / m is an integer. m is not zero.
func (d decimal) multipleOf(m decimal) bool {
	if d.digits == "" {
		return true
	}
	shift := d.exp - m.exp
	if shift < 0 {
		// d.digits would have to be divisible by 10, and has no trailing zero.
		return false
	}
	div, ok := new(big.Int).SetString(m.digits, 10)
	if !ok {
		return false
	}
	if div.IsUint64() && div.Uint64() < 1<<59 {
		n := div.Uint64()
		return mulMod(modDigits(d.digits, n), powMod(shift, n), n) == 0
	}
	num, ok := new(big.Int).SetString(d.digits, 10)
	if !ok {
		return false
	}
	pow := new(big.Int).Exp(big.NewInt(10), big.NewInt(shift), div)
	return num.Mul(num, pow).Mod(num, div).Sign() == 0
}

// modDigits is the number with these digits, modulo n < 2^59.
func modDigits(digits string, n uint64) uint64 {
	var r uint64
	for i := range len(digits) {
		r = (r*10 + uint64(digits[i]-'0')) % n
	}
	return r
}

// powMod is 10^e modulo n.
func powMod(e int64, n uint64) uint64 {
	result, base := 1%n, 10%n
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			result = mulMod(result, base, n)
		}
		base = mulMod(base, base, n)
	}
	return result
}

// mulMod is a × b modulo n, by way of 128 bits.
func mulMod(a, b, n uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, rem := bits.Div64(hi%n, lo, n)
	return rem
}

func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	s := d.digits
	switch m := d.magnitude(); {
	case d.exp >= 0 && m <= 21:
		s += strings.Repeat("0", int(d.exp))
	case d.exp < 0 && m > 0:
		s = s[:m] + "." + s[m:]
	case d.exp < 0 && m > -6:
		s = "0." + strings.Repeat("0", int(-m)) + s
	default:
		s += "e" + strconv.FormatInt(d.exp, 10)
	}
	if d.neg {
		s = "-" + s
	}
	return s
}
