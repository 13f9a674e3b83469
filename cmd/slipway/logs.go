package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"slipway/installer/launch"
	"slipway/installer/plan"
	"slipway/termtext"
)

func logsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print the end of the server's log",
		Flags: []cli.Flag{homeFlag(), &cli.IntFlag{Name: "lines", Value: 50, Usage: "how many"},
			&cli.BoolFlag{Name: "follow", Usage: "go on printing until Ctrl-C"}},
		Action: func(c *cli.Context) error {
			home, err := s.operator(c).OpenHome()
			if err != nil {
				return err
			}
			defer home.Close()
			if n := c.Int("lines"); n < 1 || n > 100_000 {
				return usage(fmt.Sprintf("--lines is %d, and must be from 1 to 100000", n))
			}
			if c.Bool("follow") {
				if s.json {
					return usage("--follow and --json do not go together: a document has an end")
				}
				follow := newFollower(home.Root, s.out, c.Int("lines"))
				for s.ctx.Err() == nil && s.out.err == nil {
					follow.more()
					s.pause()
				}
				return nil
			}
			answer, err := s.op.Logs(c.Int("lines"))
			return s.answer(answer, err, func(w io.Writer) {
				words(answer.Lines...)(w)
				if len(answer.Lines) == 0 {
					fmt.Fprintln(s.errOut, "No server has written a log here yet; start one: "+s.printed(c, "up"))
				}
			})
		},
	}
}

// follower prints what a log gains.
type follower struct {
	root   *os.Root
	out    io.Writer
	offset int64
}

func newFollower(root *os.Root, out io.Writer, lines int) *follower {
	for _, line := range launch.LastLines(root, 0, lines) {
		fmt.Fprintln(out, line)
	}
	f := &follower{root: root, out: out}
	if info, err := root.Stat(plan.ServerLog); err == nil {
		f.offset = info.Size()
	}
	return f
}

func (f *follower) more() {
	log, err := f.root.Open(plan.ServerLog)
	if err != nil {
		return
	}
	defer log.Close()
	if info, err := log.Stat(); err != nil || info.Size() < f.offset {
		f.offset = 0 // it was rotated
	}
	data, err := io.ReadAll(io.NewSectionReader(log, f.offset, 1<<20))
	if err != nil {
		return
	}
	f.offset += int64(len(data))
	fmt.Fprint(f.out, termtext.Text(string(data)))
}
