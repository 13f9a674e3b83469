package main

import (
	"encoding/json"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/engine/host"
)

// cacheVerb looks at and clears the folder of restore points.
func cacheVerb(out io.Writer) *cli.Command {
	folder := &cli.StringFlag{Name: "cache-disk", Usage: "the folder that serve was given"}
	of := func(c *cli.Context) (string, error) {
		if dir := c.String("cache-disk"); dir != "" {
			return dir, nil
		}
		return "", usage("--cache-disk is missing: the folder that serve was given")
	}
	return &cli.Command{
		Name:  "cache",
		Usage: "show or clear the restore points on disk",
		Subcommands: []*cli.Command{
			{Name: "show", Usage: "print what the folder holds, as JSON", Flags: []cli.Flag{folder},
				Action: func(c *cli.Context) error {
					dir, err := of(c)
					if err != nil {
						return err
					}
					contents, err := host.ShowCache(dir)
					if err != nil {
						return usage("--cache-disk %s: %v", dir, err)
					}
					e := json.NewEncoder(out)
					e.SetIndent("", "  ")
					return e.Encode(contents)
				}},
			{Name: "clear", Usage: "delete the restore points and remembered replies; no server may be using " +
				"the folder", Flags: []cli.Flag{folder}, Action: func(c *cli.Context) error {
				dir, err := of(c)
				if err != nil {
					return err
				}
				if err := host.ClearCache(dir); err != nil {
					return usage("--cache-disk %s: %v", dir, err)
				}
				return nil
			}},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usage("cache: there is no command %q; there are show and clear", c.Args().First())
			}
			return usage("cache: a command is missing; there are show and clear")
		},
	}
}
