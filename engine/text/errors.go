package text

import "fmt"

// FileError says that a file of the model's folder cannot be used by this package.
type FileError struct {
	File  string // path as it was opened
	Field string // where in the file, "model.merges[12]"; empty when the whole file is meant
	Found string // what is there
	Want  string // what this package can use
	Err   error  // cause (of the system, of the JSON reader), or nil
}

func (e *FileError) Error() string {
	where := e.File
	if e.Field != "" {
		where += ": " + e.Field
	}
	switch {
	case e.Err != nil && e.Want != "":
		return fmt.Sprintf("%s: %v; wanted %s", where, e.Err, e.Want)
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", where, e.Err)
	}
	return fmt.Sprintf("%s: found %s; wanted %s", where, e.Found, e.Want)
}

func (e *FileError) Unwrap() error { return e.Err }

// TemplateError says that the chat template refused or failed on a conversation. It is the request's fault when Raised
// is true (the template itself called raise_exception): Message is then the template's own sentence, fit for a 400.
type TemplateError struct {
	Message string
	Raised  bool
}

func (e *TemplateError) Error() string {
	if e.Raised {
		return "the chat template refuses this conversation: " + e.Message
	}
	return "the chat template failed: " + e.Message
}

// ConversationError says that a conversation cannot be given to any template. Field is a path such as
// "messages[2].tool_calls[0].arguments"; the error is the request's fault.
type ConversationError struct {
	Field   string
	Problem string
}

func (e *ConversationError) Error() string { return e.Field + ": " + e.Problem }
