package safetensors

import "fmt"

// MisfitError says that a file is not what was needed. Every error of this package about content is one.
type MisfitError struct {
	File   string // file name inside its folder
	Tensor string // full tensor name or config field; empty where the file as a whole is meant
	Found  string // what is there
	Wanted string // what was needed
}

func (e *MisfitError) Error() string {
	where := e.File
	if e.Tensor != "" {
		where += ": " + e.Tensor
	}
	return fmt.Sprintf("%s: found %s, wanted %s", where, e.Found, e.Wanted)
}

// Misfit makes a *MisfitError.
func Misfit(file, tensor, found, wanted string) error { return misfit(file, tensor, found, wanted) }

func misfit(file, tensor, found, wanted string) error {
	return &MisfitError{File: file, Tensor: tensor, Found: found, Wanted: wanted}
}
