package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/plan"
	"slipway/units"
)

// inputOf reads the flags of choiceFlags.
func inputOf(c *cli.Context) (installer.Input, error) {
	in := installer.Input{Home: c.String("home"), Source: c.String("source"), Request: plan.Request{
		Model: c.String("model"), Profile: c.String("profile"), Port: c.Int("port"), MonitorPort: c.Int("monitor-port"),
		Launch: !c.Bool("no-launch"), AcceptUnproven: c.Bool("accept-told"), InPlace: c.Bool("in-place"),
		AllowStop: plan.KindsOf(c.StringSlice("allow-stop")), AcceptLoss: c.Bool("accept-loss"),
	}}
	err := portsGiven(c)
	if err != nil {
		return in, err
	}
	if in.IdleForS, err = idleForOf(c); err != nil {
		return in, err
	}
	for _, size := range []struct {
		flag, example string
		into          *int64
	}{{"limit-rate", "500kB or 20MB a second", &in.LimitBytesPerSec}, {"memory", "12GB", &in.MemoryBytes},
		{"max-download", "20GB", &in.MaxDownloadBytes}} {
		text, ok := c.String(size.flag), false
		if text == "" {
			continue
		}
		if *size.into, ok = units.ParseRate(text); !ok || size.flag != "limit-rate" && strings.HasSuffix(text, "/s") {
			return in, usage(fmt.Sprintf("--%s is %q; write a number with its unit, such as %s, above 0 and below 1 TB",
				size.flag, text, size.example))
		}
	}
	in.Draft = c.String("draft")
	if err := conversationsInto(c, &in); err != nil {
		return in, err
	}
	if err := callersInto(c, &in); err != nil {
		return in, err
	}
	if in.ModelDir, err = modelDirOf(c); err != nil {
		return in, err
	}
	return in, in.Check()
}

// portsGiven refuses a port that was given and is none: to a request, 0 is a port that was left out.
func portsGiven(c *cli.Context) error {
	for _, name := range []string{"port", "monitor-port"} {
		if c.IsSet(name) {
			if err := installer.CheckPort(name, c.Int(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// conversationsInto reads --disk-cache and --normalize-file.
func conversationsInto(c *cli.Context, in *installer.Input) error {
	switch text := c.String("disk-cache"); text {
	case "":
	case "auto":
		in.DiskCacheAuto, in.DiskCacheBytes = true, 0
	case "off":
		in.DiskCacheBytes = plan.DiskCacheOff
	default:
		bytes, ok := units.ParseBytes(text)
		if !ok {
			return usage(fmt.Sprintf("--disk-cache is %q; it is a size such as 20GB, auto, or off", text))
		}
		if err := installer.CheckDiskCache(bytes); err != nil {
			return err
		}
		in.DiskCacheBytes = bytes
	}
	if !c.IsSet("normalize-file") {
		return nil
	}
	file := c.String("normalize-file")
	data, err := readBounded(file, plan.MaxNormalizeBytes)
	if err != nil {
		return usage(fmt.Sprintf("--normalize-file %q cannot be read: %s", file, fault.Innermost(err)))
	}
	if len(data) > plan.MaxNormalizeBytes {
		return usage(fmt.Sprintf("--normalize-file %q has more than %s", file, units.Short(plan.MaxNormalizeBytes)))
	}
	if in.Normalize, err = plan.ReadNormalize(data); err != nil {
		return usage(fmt.Sprintf("--normalize-file %q: %v", file, err))
	}
	in.NormalizeGiven = true
	return nil
}

// callersInto reads --allow-host and --allow-origin.
func callersInto(c *cli.Context, in *installer.Input) (err error) {
	if in.HostsGiven = c.IsSet("allow-host"); in.HostsGiven {
		if in.AllowHosts, err = plan.ReadHosts(c.StringSlice("allow-host")); err != nil {
			return usage(fmt.Sprintf("--allow-host %v", err))
		}
	}
	if in.OriginsGiven = c.IsSet("allow-origin"); in.OriginsGiven {
		if in.AllowOrigins, err = plan.ReadOrigins(c.StringSlice("allow-origin")); err != nil {
			return usage(fmt.Sprintf("--allow-origin %v", err))
		}
	}
	return nil
}

// modelDirOf reads --model-dir: a folder that is there, absolute.
func modelDirOf(c *cli.Context) (string, error) {
	dir := c.String("model-dir")
	if dir == "" {
		return "", nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", usage(fmt.Sprintf("--model-dir %q is no folder that can be looked at", dir))
	}
	return abs, nil
}

// givenFlags are the flags that say what is meant, each with its value.
func givenFlags(c *cli.Context) [][]string {
	var given [][]string
	for _, name := range []string{"home", "model", "profile", "source", "model-dir", "limit-rate", "max-download",
		"memory", "draft",
		"disk-cache", "normalize-file"} {
		if c.IsSet(name) {
			value := c.String(name)
			if slices.Contains([]string{"home", "source", "model-dir", "normalize-file"}, name) {
				value = spelledOut(value)
			}
			given = append(given, []string{"--" + name, value})
		}
	}
	for _, name := range []string{"port", "monitor-port"} {
		if c.IsSet(name) {
			given = append(given, []string{"--" + name, strconv.Itoa(c.Int(name))})
		}
	}
	for _, name := range []string{"allow-stop", "allow-host", "allow-origin"} {
		var words []string
		for _, value := range c.StringSlice(name) {
			words = append(words, "--"+name, value)
		}
		if words != nil {
			given = append(given, words)
		}
	}
	if c.IsSet("idle-for") {
		given = append(given, []string{"--idle-for", c.Duration("idle-for").String()})
	}
	for _, name := range []string{"no-launch", "accept-told", "in-place", "accept-loss"} {
		if c.Bool(name) {
			given = append(given, []string{"--" + name})
		}
	}
	return given
}

// printed is a command on this home, for a sentence.
func (s *session) printed(c *cli.Context, words ...string) string {
	return shellWords(s.argv(append(words, homeArgs(c)...)...))
}

// homeArgs is --home, where it was given, for commands that are printed.
func homeArgs(c *cli.Context) []string {
	if c.IsSet("home") {
		return []string{"--home", spelledOut(c.String("home"))}
	}
	return nil
}

// spelledOut is a path for a command that is printed, which may be typed in another folder.
func spelledOut(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil || path == "" || path == "-" || path == "~" || strings.HasPrefix(path, "~/") {
		return path
	}
	return whole
}
