package main

import (
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"slipway/installer"
)

// askOf reads the flags of choiceFlags.
func askOf(c *cli.Context) (installer.Ask, error) {
	ask := installer.Ask{
		Home: c.String("home"), Model: c.String("model"), Profile: c.String("profile"), Source: c.String("source"),
		Port: c.Int("port"), MonitorPort: c.Int("monitor-port"), Launch: !c.Bool("no-launch"), AcceptTold: c.Bool("accept-told"), AllowStop: c.StringSlice("allow-stop"),
	}
	if c.IsSet("port") && ask.Port == 0 {
		ask.Port = -1
	}
	for _, p := range []struct {
		name string
		n    int
	}{{"port", ask.Port}, {"monitor-port", ask.MonitorPort}} {
		if err := installer.CheckPort(p.name, p.n); err != nil {
			return ask, err
		}
	}
	if ask.Port != 0 && ask.Port == ask.MonitorPort {
		return ask, usage(fmt.Sprintf("--port and --monitor-port are both %d", ask.Port))
	}
	return ask, nil
}

// choiceArgs writes a request back as flags, for commands that are printed.
func choiceArgs(c *cli.Context) []string {
	var args []string
	for _, name := range []string{"home", "model", "profile", "source"} {
		if c.IsSet(name) {
			args = append(args, "--"+name, c.String(name))
		}
	}
	for _, name := range []string{"port", "monitor-port"} {
		if c.IsSet(name) {
			args = append(args, "--"+name, strconv.Itoa(c.Int(name)))
		}
	}
	for _, kind := range c.StringSlice("allow-stop") {
		args = append(args, "--allow-stop", kind)
	}
	for _, name := range []string{"no-launch", "accept-told"} {
		if c.Bool(name) {
			args = append(args, "--"+name)
		}
	}
	return args
}

// homeArgs is --home as it was given, for commands that are printed.
func homeArgs(c *cli.Context) []string {
	if c.IsSet("home") {
		return []string{"--home", c.String("home")}
	}
	return nil
}
