package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
)

// Subject is what to look at in addition to the machine: the home (absolute; it need not exist), our own
// program (for quarantine; "" skips it), and model files of which one byte is read each.
type Subject struct {
	Home    string
	Program string
	Files   []string
}

// Observe looks at everything once, in the order in which it is printed. It never fails: what is not learnt is unknown
// and says why.
func Observe(ctx context.Context, src Sources, subject Subject) Facts {
	f := Facts{Home: subject.Home}
	goos, goarch, cores := src.Platform()
	f.OS = known(goos, "built for it")
	f.Arch = known(goarch, "built for it")
	report := profiled{err: errors.New("only macOS has purgeable space")}
	switch goos {
	case "darwin":
		report = observeMac(ctx, src, &f)
	case "linux":
		observeLinux(src, &f, cores)
	default:
		f.System = known(goos, "built for it")
	}
	observeMetal(ctx, src, &f)
	observeDisk(ctx, src, report, &f)
	for _, path := range subject.Files {
		f.Access = append(f.Access, Access{path, access(src, goos, path)})
	}
	f.Quarantined = quarantine(src, goos, subject.Program)
	f.Tools = tools(ctx, src, goos, f.DevTools)
	f.Proxies = proxies(src)
	return f
}

// observeMetal asks the device, else estimates. A wired limit set by the user changes the device's own answer, so it is
// the better estimate where there is one. A limit beyond the machine's memory is not believed, wherever it comes from:
// macOS accepts any number.
func observeMetal(ctx context.Context, src Sources, f *Facts) {
	if f.OS.Value != "darwin" {
		why := "Metal exists only on macOS"
		f.MetalDevice, f.WorkingSet = unknown[string](why), unknown[int64](why)
		f.MaxBuffer, f.WiredLimit = unknown[int64](why), unknown[int64](why)
		return
	}
	beyond := ""
	f.WiredLimit = unknown[int64]("sysctl iogpu.wired_limit_mb does not answer")
	if mb, err := src.Int("iogpu.wired_limit_mb"); err == nil {
		if f.RAM.Known && mb > f.RAM.Value>>20 {
			beyond = fmt.Sprintf("iogpu.wired_limit_mb is %d, more than the machine's memory", mb)
			f.WiredLimit = unknown[int64](beyond)
		} else {
			f.WiredLimit = known(mb<<20, "sysctl iogpu.wired_limit_mb")
		}
	}
	report, err := src.Metal(ctx)
	if err == nil {
		f.MetalDevice = known(report.Name, "Metal")
		f.MaxBuffer = known(report.MaxBufferLength, "Metal: maxBufferLength")
		f.WorkingSet = known(report.RecommendedMaxWorkingSetSize, "Metal: recommendedMaxWorkingSetSize")
		if f.RAM.Known && report.RecommendedMaxWorkingSetSize > f.RAM.Value {
			beyond = "Metal reports more than the machine's memory"
		}
		if beyond != "" {
			f.WorkingSet = guessed(EstimateWorkingSet(f.RAM.Value), "estimated by share of memory; "+beyond)
		}
		return
	}
	f.MetalDevice = unknown[string](err.Error())
	f.MaxBuffer = unknown[int64](err.Error())
	switch {
	case !f.AppleSilicon():
		f.WorkingSet = unknown[int64]("this Mac has no Apple chip")
	case f.WiredLimit.Known && f.WiredLimit.Value > 0:
		f.WorkingSet = guessed(f.WiredLimit.Value, "estimated: the limit set by iogpu.wired_limit_mb; Metal did "+
			"not answer")
	case f.RAM.Known && beyond != "":
		f.WorkingSet = guessed(EstimateWorkingSet(f.RAM.Value), "estimated by share of memory; "+beyond)
	case f.RAM.Known:
		f.WorkingSet = guessed(EstimateWorkingSet(f.RAM.Value), "estimated by share of memory; Metal did not answer")
	default:
		f.WorkingSet = unknown[int64](err.Error())
	}
}

func observeDisk(ctx context.Context, src Sources, report profiled, f *Facts) {
	v, err := src.Volume(ctx, f.Home)
	if err != nil {
		why := "statfs: " + err.Error()
		f.FileSystem, f.DiskTotal, f.DiskFree, f.Purgeable = unknown[string](why), unknown[int64](why),
			unknown[int64](why), unknown[int64](why)
		return
	}
	f.FileSystem = known(strings.ToLower(v.FileSystem), "statfs")
	f.DiskTotal = known(v.TotalBytes, "statfs")
	f.DiskFree = known(v.FreeBytes, "statfs")
	f.Purgeable = purgeable(report, v)
}

// access opens a file and reads one byte. On macOS a folder that privacy settings protect answers "operation not
// permitted" (EPERM) where plain modes answer "permission denied" (EACCES).
func access(src Sources, goos, path string) Fact[string] {
	_, err := src.Head(path, 1)
	switch {
	case err == nil:
		return known("open", "one byte read")
	case errors.Is(err, fs.ErrNotExist):
		return known("absent", "no such file")
	case goos == "darwin" && notPermitted(err):
		return known("privacy", err.Error())
	case errors.Is(err, fs.ErrPermission):
		return known("refused", err.Error())
	}
	return unknown[string](err.Error())
}

func quarantine(src Sources, goos, program string) Fact[bool] {
	if goos != "darwin" {
		return unknown[bool]("quarantine exists only on macOS")
	}
	if program == "" {
		return unknown[bool]("no program was named")
	}
	const attribute = "com.apple.quarantine"
	_, err := src.Attribute(program, attribute)
	switch {
	case err == nil:
		return known(true, "extended attribute "+attribute)
	case errors.Is(err, fs.ErrNotExist):
		return known(false, "no extended attribute "+attribute)
	}
	return unknown[bool](err.Error())
}

var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy",
	"NO_PROXY", "no_proxy"}

func proxies(src Sources) []Proxy {
	var found []Proxy
	for _, name := range proxyVariables {
		if value := src.Env(name); value != "" {
			found = append(found, Proxy{name, withoutUser(value)})
		}
	}
	return found
}

// withoutUser removes user and password; what is not a URL and has an @ is not shown at all.
func withoutUser(value string) string {
	if !strings.Contains(value, "@") {
		return value
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme == "" {
		return "(hidden: it holds a name or a password)"
	}
	return u.Scheme + "://" + u.Host
}
