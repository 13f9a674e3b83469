package installer

import (
	"fmt"

	"slipway/installer/neighbor"
	"slipway/installer/plan"
	"slipway/profiles"
	"slipway/termtext"
	"slipway/units"
)

// Bounds of a request, in seconds: how long another server has to be seen idle before it may be stopped.
var leastIdleS = int(neighbor.DefaultTiming.Span.Seconds())

const mostIdleS = 3600

// Check refuses values that no request can have, whoever made it: flags, a plan file, the settings of a home or another
// caller. Zero values are what is left out. Model and profile are looked up later, where the models are known. Error:
// *ChoiceError, which names the flag.
func (in Input) Check() error {
	for _, err := range []error{
		checkPorts(in.Port, in.MonitorPort), checkDraft(in.Draft), checkNormalize(in.Normalize),
		checkCallers("allow-host", in.AllowHosts, plan.ReadHosts),
		checkCallers("allow-origin", in.AllowOrigins, plan.ReadOrigins),
		notNegative("memory", in.MemoryBytes), notNegative("limit-rate", in.LimitBytesPerSec),
		notNegative("max-download", in.MaxDownloadBytes),
	} {
		if err != nil {
			return err
		}
	}
	for name, path := range map[string]string{"source": in.Source, "model-dir": in.ModelDir} {
		if !termtext.IsLine(path) {
			return &ChoiceError{fmt.Sprintf("--%s %q holds a line break or another control character", name, path)}
		}
	}
	if in.DiskCacheBytes != 0 && in.DiskCacheBytes != plan.DiskCacheOff {
		if err := CheckDiskCache(in.DiskCacheBytes); err != nil {
			return err
		}
	}
	if in.IdleForS != 0 {
		if err := CheckIdle(in.IdleForS); err != nil {
			return err
		}
	}
	_, err := allowedKinds(in.AllowStop)
	return err
}

func checkPorts(port, monitor int) error {
	for _, p := range []struct {
		name  string
		value int
	}{{"port", port}, {"monitor-port", monitor}} {
		if p.value != 0 {
			if err := CheckPort(p.name, p.value); err != nil {
				return err
			}
		}
	}
	if port != 0 && port == monitor {
		return &ChoiceError{fmt.Sprintf("--port and --monitor-port are both %d", port)}
	}
	return nil
}

// CheckPort refuses what is no port.
func CheckPort(name string, n int) error {
	if n < 1 || n > 65535 {
		return &ChoiceError{fmt.Sprintf("--%s is %d, and a port is a number from 1 to 65535", name, n)}
	}
	return nil
}

// CheckDiskCache refuses a size that holds no conversation.
func CheckDiskCache(bytes int64) error {
	if bytes < profiles.LeastDiskCacheBytes {
		return &ChoiceError{fmt.Sprintf("--disk-cache is %s; it is a size of at least %s such as 20GB, auto, or off",
			units.Short(bytes), units.Short(profiles.LeastDiskCacheBytes))}
	}
	return nil
}

// CheckIdle refuses a span in which too little is seen of another server, or for which nobody waits.
func CheckIdle(seconds int) error {
	if seconds < leastIdleS || seconds > mostIdleS {
		return &ChoiceError{fmt.Sprintf("--idle-for is %ds, and must be whole seconds from %ds to 1h", seconds,
			leastIdleS)}
	}
	return nil
}

func checkDraft(draft string) error {
	if _, known := profiles.DraftOf(profiles.DraftKind(draft)); draft != "" && !known {
		return &ChoiceError{fmt.Sprintf("--draft is %q; it is %s", draft, profiles.DraftChoices())}
	}
	return nil
}

// checkNormalize refuses rules that are not in the one form that ReadNormalize gives.
func checkNormalize(rules string) error {
	if rules == "" {
		return nil
	}
	if len(rules) > plan.MaxNormalizeBytes {
		return &ChoiceError{fmt.Sprintf("--normalize-file: the rules have more than %s",
			units.Short(plan.MaxNormalizeBytes))}
	}
	same, err := plan.ReadNormalize([]byte(rules))
	if err != nil {
		return &ChoiceError{fmt.Sprintf("--normalize-file: %v", err)}
	}
	if same != rules {
		return &ChoiceError{"--normalize-file: the rules are not in the form that plan.ReadNormalize gives"}
	}
	return nil
}

// checkCallers refuses names that are not in the one form in which they are read.
func checkCallers(flag string, names plan.Kinds, read func([]string) (plan.Kinds, error)) error {
	same, err := read(names.List())
	if err != nil {
		return &ChoiceError{fmt.Sprintf("--%s %v", flag, err)}
	}
	if same != names {
		return &ChoiceError{fmt.Sprintf("--%s: %q is not in the form in which it is kept, %q", flag, names, same)}
	}
	return nil
}

func notNegative(name string, n int64) error {
	if n < 0 {
		return &ChoiceError{fmt.Sprintf("--%s is %d, and must be more than nothing", name, n)}
	}
	return nil
}
