package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/urfave/cli/v2"
)

// versionAnswer is the data of version.
type versionAnswer struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	Target  string `json:"target"`
}

func versionVerb(s *session) *cli.Command {
	return &cli.Command{Name: "version", Usage: "the version of this program", Action: func(*cli.Context) error {
		answer := versionAnswer{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		return s.result(exitOK, answer, func(w io.Writer) {
			fmt.Fprintf(w, "slipway %s (%s, %s)\n", answer.Version, answer.Go,
				answer.Target)
		})
	}}
}
