package schemaguard

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A pattern is a regular expression of a schema. JSON Schema means those of
// ECMA-262; ours are RE2's, which match in linear time.
type pattern struct {
	source string
	re     *regexp.Regexp // nil: RE2 cannot express it, anything matches
	cost   int64          // steps for each 64 bytes
}

// stepsPerInstruction is what 64 bytes cost for each instruction of a compiled
// expression: in the worst case each byte meets each of them.
const stepsPerInstruction = 8

func (p *pattern) String() string { return p.source }

// MatchString is what the library needs.
func (p *pattern) MatchString(s string) bool { return p.re == nil || p.re.MatchString(s) }

// patterns is the regular expression engine for one compilation.
type patterns struct {
	unchecked []string
}

// compile refuses what is no regular expression at all.
func (ps *patterns) compile(source string) (jsonschema.Regexp, error) {
	translated := fromECMA(source)
	re, err := regexp.Compile(translated)
	if err != nil {
		if !onlyECMA(err) {
			return nil, err
		}
		ps.unchecked = append(ps.unchecked, source)
		return &pattern{source: source}, nil
	}
	p := &pattern{source: source, re: re, cost: stepsPerInstruction}
	if parsed, err := syntax.Parse(translated, syntax.Perl); err == nil {
		if prog, err := syntax.Compile(parsed.Simplify()); err == nil {
			p.cost = stepsPerInstruction * int64(len(prog.Inst))
		}
	}
	return p, nil
}

// CheckPattern reports what is no regular expression at all. One that only
// ECMA-262 has is fine.
func CheckPattern(source string) error {
	_, err := new(patterns).compile(source)
	return err
}

// onlyECMA reports whether the failing expression is one that ECMA-262 has and
// RE2 cannot have: lookaround, back references, large repetitions.
func onlyECMA(err error) bool {
	var se *syntax.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		return true
	case syntax.ErrInvalidCharRange:
		return strings.Contains(se.Expr, `\`)
	case syntax.ErrInvalidEscape:
		return len(se.Expr) > 1 && strings.IndexByte("123456789kcupP", se.Expr[1]) >= 0
	}
	return false
}

// fromECMA rewrites what ECMA-262 writes differently from RE2.
func fromECMA(s string) string {
	if !strings.Contains(s, `\`) && !strings.Contains(s, "[^]") && !strings.Contains(s, "[]") {
		return s
	}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(s); i++ {
		switch {
		case !inClass && strings.HasPrefix(s[i:], "[^]"):
			b.WriteString(`[\x{0}-\x{10FFFF}]`)
			i += 2
		case !inClass && strings.HasPrefix(s[i:], "[]"):
			b.WriteString(`[^\x{0}-\x{10FFFF}]`)
			i++
		case s[i] == '\\' && i+1 < len(s):
			text, n := escapeFromECMA(s[i:])
			b.WriteString(text)
			i += n - 1
		default:
			if s[i] == '[' || s[i] == ']' {
				inClass = s[i] == '['
			}
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// escapeFromECMA translates the escape that s begins with, and returns its length in s.
func escapeFromECMA(s string) (string, int) {
	switch c := s[1]; c {
	case 'u':
		if strings.HasPrefix(s, `\u{`) {
			if end := strings.IndexByte(s, '}'); end > 3 {
				return `\x{` + s[3:end] + `}`, end + 1
			}
		}
		if len(s) >= 6 {
			if r, err := strconv.ParseUint(s[2:6], 16, 32); err == nil {
				if r >= 0xD800 && r < 0xDC00 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
					if low, err := strconv.ParseUint(s[8:12], 16, 32); err == nil && low >= 0xDC00 && low < 0xE000 {
						return `\x{` + strconv.FormatUint(0x10000+(r-0xD800)<<10+(low-0xDC00), 16) + `}`, 12
					}
				}
				return `\x{` + s[2:6] + `}`, 6
			}
		}
	case 'c':
		if len(s) >= 3 && (s[2]|0x20 >= 'a' && s[2]|0x20 <= 'z') {
			return `\x{` + strconv.FormatUint(uint64(s[2]&0x1f), 16) + `}`, 3
		}
	case '0':
		return `\x{0}`, 2
	case 'p', 'P':
		for long, short := range unicodeClasses {
			for _, prefix := range [...]string{"{", "{General_Category=", "{gc="} {
				if name := `\` + string(c) + prefix + long + "}"; strings.HasPrefix(s, name) {
					return `\` + string(c) + "{" + short + "}", len(name)
				}
			}
		}
		if name := `\` + string(c) + "{Script="; strings.HasPrefix(s, name) {
			if end := strings.IndexByte(s, '}'); end > 0 {
				return `\` + string(c) + "{" + s[len(name):end] + "}", end + 1
			}
		}
	}
	return s[:2], 2
}

// unicodeClasses are long names of classes that RE2 knows by their short ones.
var unicodeClasses = map[string]string{
	"Letter": "L", "Lowercase_Letter": "Ll", "Uppercase_Letter": "Lu", "Titlecase_Letter": "Lt",
	"Number": "N", "Decimal_Number": "Nd", "digit": "Nd", "Punctuation": "P", "punct": "P",
	"Symbol": "S", "Separator": "Z", "Mark": "M", "Other": "C",
}
