package operate

import (
	"slices"

	"slipway/installer/apply"
)

// usualHome is the home that is meant where none is named.
const usualHome = "~/.slipway"

// OpenPlan is a plan that was begun and not finished, and on which no slipway works now.
type OpenPlan struct {
	Digest string
	Words  []string // the command that continues it, without our name
}

// OpenPlan finds the plan that was interrupted in this home; nil when there is none, or it cannot be read: Status says
// what is damaged.
func (o *Operator) OpenPlan() (open *OpenPlan) {
	o.inHome(func(home *apply.Home) error {
		begun, err := apply.Open(home)
		if err != nil || begun.Digest == "" || home.Busy() != nil {
			return err
		}
		words := begun.Command
		if len(words) == 0 {
			words = []string{"setup"}
		}
		open = &OpenPlan{begun.Digest, append(slices.Clone(words), o.homeWords(home.Path)...)}
		return nil
	})
	return open
}

// homeWords names a home in a command, unless it is the usual one.
func (o *Operator) homeWords(path string) []string {
	if usual, err := apply.ResolveHome(usualHome, o.Environment.UserHome); err == nil && usual == path {
		return nil
	}
	return []string{"--home", path}
}

// GivenUp reports whether a plan that was open is open no more and was never finished: another one replaced it.
func (o *Operator) GivenUp(open *OpenPlan) (given bool) {
	o.inHome(func(home *apply.Home) error {
		receipt, err := home.Receipt(open.Digest)
		given = err == nil && !receipt.Complete
		return err
	})
	return given
}
