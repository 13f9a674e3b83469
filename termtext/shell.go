package termtext

import (
	"fmt"
	"strings"
)

// ShellWords writes an argv so that a shell reads it back as it was; control characters in the form $'...' of bash and
// zsh, because they must not reach a terminal.
func ShellWords(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		if Line(a) != a {
			words[i] = escapedWord(a)
			continue
		}
		if a == "" || strings.ContainsAny(a, " \t\n\"'`$&|;<>()*?[]{}\\!#~") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words[i] = a
	}
	return strings.Join(words, " ")
}

func escapedWord(a string) string {
	var word strings.Builder
	word.WriteString("$'")
	for _, c := range []byte(a) {
		switch {
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&word, "\\x%02x", c)
		case c == '\'' || c == '\\':
			word.WriteString("\\" + string(c))
		default:
			word.WriteByte(c)
		}
	}
	return word.String() + "'"
}

// Sentence makes a sentence of a text: it begins with a capital, unless it begins with a name (a file, a host,
// slipway), and ends with a stop.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	first, _, _ := strings.Cut(s, " ")
	word := strings.TrimRight(first, ",;")
	named := strings.HasPrefix(s, "slipway") || strings.ContainsFunc(word,
		func(c rune) bool { return (c < 'a' || c > 'z') && c != '\'' && c != '-' })
	if s[0] >= 'a' && s[0] <= 'z' && !named {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?:") {
		s += "."
	}
	return s
}
