package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
	"slipway/installer/store"
	"slipway/termtext"
)

func verifyVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "compare what is installed with its lock and receipt",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "deep",
			Usage: "hash every byte instead of looking at sizes and times"}},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).Verify(s.ctx, operate.VerifyInput{Deep: c.Bool("deep")})
			return s.answer(answer, err, func(w io.Writer) {
				for _, f := range answer.Faults {
					fmt.Fprintln(w, termtext.Text(differenceWords(f)))
				}
				for _, name := range answer.Extra {
					fmt.Fprintf(w, "%q is not part of the model and was left alone.\n", name)
				}
				switch {
				case answer.OK && answer.Unfinished:
					fmt.Fprintf(w, "Set-up is not finished. Of what is there, %s as they should be.\n",
						are(answer.Files))
				case answer.OK:
					fmt.Fprintf(w, "%s as they should be.\n", are(answer.Files))
				default:
					fmt.Fprintln(w, "slipway setup --deep repairs this.")
				}
			})
		},
	}
}

// differenceWords says one difference. What was not hashed is not said to be wrong.
func differenceWords(f operate.Difference) string {
	switch {
	case f.Found != "":
		return fmt.Sprintf("%s: %s (expected %s, found %s)", f.Path, f.State, f.Expected, f.Found)
	case f.State == string(store.Changed):
		return f.Path + ": changed since its hash was checked; whether its bytes are right, slipway verify --deep tells"
	case f.State == string(store.Unrecorded):
		return f.Path + ": there is no record that its hash was checked; slipway verify --deep tells"
	}
	return f.Path + ": " + f.State
}

func are(n int) string {
	if n == 1 {
		return "1 file is"
	}
	return files(n) + " are"
}
