package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
	"slipway/units"
)

func cacheVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "cache", Usage: "show or clear the conversations that are kept on disk",
		Subcommands: []*cli.Command{
			{Name: "show", Usage: "print how much is kept", Flags: []cli.Flag{homeFlag()},
				Action: func(c *cli.Context) error {
					answer, err := s.operator(c).ShowCache(s.ctx)
					return s.answer(answer, err, func(w io.Writer) {
						printCache(w, answer)
						if answer.BudgetBytes > 0 {
							fmt.Fprintf(w, "At most %s are kept; --disk-cache changes that.\n",
								units.Short(answer.BudgetBytes))
						} else {
							fmt.Fprintln(w, "The server that is set up keeps nothing on disk.")
						}
					})
				}},
			{Name: "clear", Usage: "delete it; the server must be stopped", Flags: []cli.Flag{homeFlag(),
				&cli.BoolFlag{Name: "yes", Usage: "do it without a question"},
				&cli.BoolFlag{Name: "no-input", Usage: "never ask; without --yes end with exit code 5"}},
				Action: func(c *cli.Context) error {
					answer, err := s.operator(c).ClearCache(s.ctx, operate.ClearCacheInput{Yes: c.Bool("yes")})
					return s.answer(answer, err, func(w io.Writer) {
						if answer.Never {
							fmt.Fprintln(w, "Nothing is kept on disk.")
							return
						}
						fmt.Fprintf(w, "Deleted %s restore points, %s.\n", units.Count(answer.Points),
							units.Short(answer.Bytes))
					})
				}},
		},
	}
}

func printCache(w io.Writer, a operate.CacheAnswer) {
	if a.Bytes == 0 {
		fmt.Fprintf(w, "Nothing is kept on disk (%q).\n", a.Folder)
		return
	}
	fmt.Fprintf(w, "%s restore points, %s, in %q. They hold your prompts and the replies.\n", units.Count(a.Points),
		units.Short(a.Bytes), a.Folder)
	if a.Points > 0 {
		fmt.Fprintf(w, "The oldest is of %s, the newest of %s.\n", a.Oldest.Local().Format(time.DateTime),
			a.Newest.Local().Format(time.DateTime))
	}
}
