package structured

import "fmt"

// Error says why a schema is not taken.
type Error struct {
	Path string // JSON pointer into the schema, "" for its root
	Why  string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "the schema " + e.Why
	}
	return fmt.Sprintf("the schema at %.200s %s", e.Path, e.Why)
}

func refuse(path, format string, args ...any) error {
	return &Error{Path: path, Why: fmt.Sprintf(format, args...)}
}
