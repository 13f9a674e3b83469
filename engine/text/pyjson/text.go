package pyjson

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// WriteText writes a JSON string and escapes what JSON must have escaped, and nothing else.
func WriteText(out *strings.Builder, s string) {
	out.WriteByte('"')
	AppendText(out, s)
	out.WriteByte('"')
}

// AppendText writes s as the inside of a JSON string.
func AppendText(out *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	plain := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out.WriteString(s[plain:i])
		plain = i + 1
		switch c {
		case '"', '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case '\n':
			out.WriteString(`\n`)
		case '\r':
			out.WriteString(`\r`)
		case '\t':
			out.WriteString(`\t`)
		case '\b':
			out.WriteString(`\b`)
		case '\f':
			out.WriteString(`\f`)
		default:
			out.WriteString(`\u00`)
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		}
	}
	out.WriteString(s[plain:])
}

// Float is repr of a float: the shortest digits, a point or an exponent always.
func Float(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	scientific := strconv.FormatFloat(f, 'e', -1, 64)
	exponent, _ := strconv.Atoi(scientific[strings.IndexByte(scientific, 'e')+1:])
	if exponent < -4 || exponent >= 16 {
		return scientific
	}
	plain := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(plain, ".") {
		plain += ".0"
	}
	return plain
}

// Number gives the JSON of what Python's int reads, and where float is true of what its float reads. Integers of
// any size keep their digits; a float that is whole is written without a point, as the parsers of model families
// do.
func Number(text string, float bool) (string, bool) {
	if n, ok := new(big.Int).SetString(text, 10); ok && len(text) <= 1000 {
		return n.String(), true
	}
	if !float || strings.ContainsAny(text, "xXpP_") {
		return "", false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", false
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatInt(int64(f), 10), true
	}
	if json.Valid([]byte(text)) {
		return text, true
	}
	return Float(f), true
}
