// Package strict reads TOML files in which an unknown key is an error: a misspelt setting must never be a default.
package strict

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Error names the file, the line (0 when it has none) and the key of what is wrong.
type Error struct {
	File string
	Line int
	Key  string
	Why  string
}

func (e *Error) Error() string {
	place := e.File
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Key == "" {
		return place + ": " + e.Why
	}
	return fmt.Sprintf("%s: %s: %s", place, e.Key, e.Why)
}

var wrongType = regexp.MustCompile(`^line (\d+) \(last key "([^"]*)"\): (.*)$`)

// Decode fills v from data and refuses syntax errors, wrong types, unknown keys and keys that are not lower case.
// Errors are *Error; file is only a name for messages.
func Decode(file string, data []byte, v any) error {
	md, err := toml.Decode(string(data), v)
	if err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return &Error{File: file, Line: parse.Position.Line, Key: parse.LastKey, Why: parse.Message}
		}
		// A value of the wrong type comes as a plain error: toml: line N (last key "a.b"): why
		why := strings.TrimPrefix(err.Error(), "toml: ")
		if parts := wrongType.FindStringSubmatch(why); parts != nil {
			line, _ := strconv.Atoi(parts[1])
			return &Error{File: file, Line: line, Key: parts[2], Why: parts[3]}
		}
		return &Error{File: file, Why: why}
	}
	for _, key := range md.Undecoded() {
		return At(file, data, key.String(), "is not a key of this file")
	}
	for _, key := range md.Keys() {
		// The decoder also accepts ID for id.
		if name := key.String(); strings.ToLower(name) != name {
			return At(file, data, name, "is not a key of this file (keys are lower case)")
		}
	}
	return nil
}

// At makes an Error for a dotted key and finds its line. It knows bare keys and [table] headers, all that our files
// use; a key that is missing from its table gets the table's line.
func At(file string, data []byte, key, why string) *Error {
	e := &Error{File: file, Key: key, Why: why}
	wantTable, wantKey := "", key
	if dot := strings.LastIndexByte(key, '.'); dot >= 0 {
		wantTable, wantKey = key[:dot], key[dot+1:]
	}
	table := ""
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(strings.SplitN(line, "#", 2)[0], "[] \t")
			switch {
			case table == key:
				e.Line = i + 1
				return e
			case table == wantTable && e.Line == 0:
				e.Line = i + 1
			}
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); ok && table == wantTable && name == wantKey {
			e.Line = i + 1
			return e
		}
	}
	return e
}
