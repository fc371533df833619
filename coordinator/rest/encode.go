package rest

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// encoder appends compact JSON to one buffer. It puts the commas itself: one
// goes before a name or a value unless that is the first in its object or
// array. The caller opens and closes in pairs.
type encoder struct {
	b []byte
}

func (e *encoder) comma() {
	if n := len(e.b); n > 0 {
		switch e.b[n-1] {
		case '{', '[', ':':
		default:
			e.b = append(e.b, ',')
		}
	}
}

func (e *encoder) open(bracket byte) {
	e.comma()
	e.b = append(e.b, bracket)
}

func (e *encoder) close(bracket byte) { e.b = append(e.b, bracket) }

// object writes an object whose members members writes.
func (e *encoder) object(members func()) {
	e.open('{')
	members()
	e.close('}')
}

// array writes an array whose elements elements writes.
func (e *encoder) array(elements func()) {
	e.open('[')
	elements()
	e.close(']')
}

// name writes the name of the member whose value comes next.
func (e *encoder) name(name string) *encoder {
	e.comma()
	e.b = append(appendText(e.b, name), ':')
	return e
}

func (e *encoder) text(s string) {
	e.comma()
	e.b = appendText(e.b, s)
}

func (e *encoder) texts(list []string) {
	e.array(func() {
		for _, s := range list {
			e.text(s)
		}
	})
}

func (e *encoder) integer(n int64) {
	e.comma()
	e.b = strconv.AppendInt(e.b, n, 10)
}

func (e *encoder) natural(n uint64) {
	e.comma()
	e.b = strconv.AppendUint(e.b, n, 10)
}

func (e *encoder) boolean(v bool) {
	e.comma()
	e.b = strconv.AppendBool(e.b, v)
}

func (e *encoder) double(f float64) {
	e.comma()
	e.b = appendDouble(e.b, f)
}

func (e *encoder) null() {
	e.comma()
	e.b = append(e.b, "null"...)
}

const hexDigits = "0123456789abcdef"

// appendText appends s as a JSON string. Bytes that are not UTF-8 come out as
// U+FFFD, so that an answer stays valid JSON whatever a client called things.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			b = appendEscaped(b, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\ufffd"...)
			i++
			start = i
			continue
		}
		i += size
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendDouble appends f as Java prints a double: 0.3, 1.0, 1.0E-4. A value
// that JSON has no number for becomes null.
func appendDouble(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	if size := math.Abs(f); size != 0 && (size < 1e-3 || size >= 1e7) {
		return appendScientific(b, f)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	for _, c := range b[start:] {
		if c == '.' {
			return b
		}
	}
	return append(b, ".0"...)
}

func appendScientific(b []byte, f float64) []byte {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E") // d.dddE-05 or dE+07
	b = append(b, mantissa...)
	if !strings.Contains(mantissa, ".") {
		b = append(b, ".0"...)
	}
	n, _ := strconv.Atoi(exponent) // FormatFloat's own exponent parses
	return strconv.AppendInt(append(b, 'E'), int64(n), 10)
}

// pretty lays compact JSON out as OpenSearch does under ?pretty: two spaces a
// level, blanks around the colon, a line end at the end.
func pretty(compact []byte) []byte {
	out := make([]byte, 0, 2*len(compact))
	level := 0
	line := func() {
		out = append(out, '\n')
		for range level {
			out = append(out, ' ', ' ')
		}
	}
	for i := 0; i < len(compact); i++ {
		switch c := compact[i]; c {
		case '"':
			end := stringEnd(compact, i)
			out = append(out, compact[i:end+1]...)
			i = end
		case '{', '[':
			if next := compact[i+1]; next == '}' || next == ']' {
				out = append(out, c, ' ', next)
				i++
				continue
			}
			out = append(out, c)
			level++
			line()
		case '}', ']':
			level--
			line()
			out = append(out, c)
		case ',':
			out = append(out, c)
			line()
		case ':':
			out = append(out, ' ', c, ' ')
		default:
			out = append(out, c)
		}
	}
	return append(out, '\n')
}
