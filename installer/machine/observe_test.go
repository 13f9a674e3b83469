package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files, to be reviewed as prose")

func recording(t *testing.T, name string) *Recorded {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRecording(data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// On a Mac, observing the real machine starts this test program again with MetalVerb.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == MetalVerb {
		os.Exit(MetalMain(os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

var all = []string{"m1-16", "m2-pro-32", "m3-ultra-96", "m3-ultra-512", "m4-24", "m4-max-36", "m5-max-128",
	"m2-rosetta-exfat", "debian-12"}

func subject(name string) Subject {
	s := Subject{Home: "/Users/a/.slipway", Program: "/usr/local/bin/slipway"}
	if name == "m4-max-36" {
		s.Program = "/Users/a/Downloads/slipway"
		s.Files = []string{"/Users/a/.slipway/models/x/config.json", "/Users/a/Documents/models/config.json",
			"/Users/a/gone.json"}
	}
	return s
}

func TestEveryRecordingNamesItsSource(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != len(all) {
		t.Fatalf("%d recordings, %d listed, %v", len(files), len(all), err)
	}
	for _, name := range all {
		if source := recording(t, name).Source; !strings.Contains(source, "composed") &&
			!strings.Contains(source, "issue") && !strings.Contains(source, "pull request") {
			t.Errorf("%s: %q neither names a public source nor says composed", name, source)
		}
	}
}

// The goldens are read as prose: every fact, how it was learnt, and what sizing sees.
func TestRecordedMachinesGiveTheirFacts(t *testing.T) {
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			f := Observe(context.Background(), recording(t, name), subject(name))
			var out strings.Builder
			for _, l := range f.Describe() {
				fmt.Fprintf(&out, "%s: %s (%s)\n", l.Label, l.Value, l.How)
			}
			s := f.Sizing()
			fmt.Fprintf(&out, "\nsizing gets: %d bytes of memory, Metal cap %d, estimated %v\n", s.RAMBytes,
				s.CapBytes, s.CapEstimated)
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != string(want) {
				t.Errorf("%s differs (go test ./installer/machine -update, then read it as prose):\n%s", path,
					out.String())
			}
		})
	}
}

// A system that answers nothing gives facts that are all unknown and say why; nothing panics.
func TestFactsAreUnknownWhereNothingAnswers(t *testing.T) {
	for _, goos := range []string{"darwin", "linux", "plan9"} {
		r, err := ParseRecording([]byte("composed\n-- platform " + goos + " arm64 8 --\n"))
		if err != nil {
			t.Fatal(err)
		}
		f := Observe(context.Background(), r, Subject{Home: "/nowhere", Program: "/x", Files: []string{"/y"}})
		if f.RAM.Known || f.WorkingSet.Known || f.DiskFree.Known || f.Chip.Known || f.Boot.Known {
			t.Errorf("%s: something is known: %+v", goos, f)
		}
		for _, l := range f.Describe() {
			if l.How == "" && goos != "plan9" {
				t.Errorf("%s: %s does not say how or why not", goos, l.Label)
			}
		}
	}
}

// Outputs cut or replaced by nonsense must never make a known fact of nonsense.
func TestDamagedOutputsAreUnknown(t *testing.T) {
	whole, err := os.ReadFile("testdata/m1-16.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]struct {
		old, new string
		unknown  func(Facts) bool
	}{
		"vm_stat without page size": {"page size of 16384 bytes", "page size unknown", func(f Facts) bool {
			return !f.MemoryAvailable.Known
		}},
		"no performance levels": {"hw.nperflevels: 2", "hw.nperflevels: 0", func(f Facts) bool {
			return !f.PerformanceCores.Known && !f.CoreLevels.Known
		}},
		"memory of nought": {"hw.memsize: 17179869184", "hw.memsize: 0", func(f Facts) bool {
			return !f.RAM.Known
		}},
		"memory that is no number": {"hw.memsize: 17179869184", "hw.memsize: lots", func(f Facts) bool {
			return !f.RAM.Known
		}},
		"system_profiler prints no JSON": {`"SPDisplaysDataType": [`, `"SPDisplaysDataType": {`, func(f Facts) bool {
			return !f.GPUCores.Known
		}},
		"GPU cores in words": {`"sppci_cores": "8"`, `"sppci_cores": "eight"`, func(f Facts) bool {
			return !f.GPUCores.Known
		}},
		"pressure of an unknown level": {"vm_pressure_level: 2", "vm_pressure_level: 3", func(f Facts) bool {
			return !f.Pressure.Known
		}},
		"sw_vers without a version": {"ProductVersion:", "Product:", func(f Facts) bool {
			return !f.Version.Known
		}},
		"pmset of another form": {"Now drawing from", "Drawing from", func(f Facts) bool {
			return !f.Power.Known
		}},
		"a chip without a generation": {"brand_string: Apple M1", "brand_string: Apple Silicon",
			func(f Facts) bool { return f.Chip.Known && !f.Generation.Known }},
		"storage of another mount": {`"mount_point": "/System/Volumes/Data"`, `"mount_point": "/Volumes/X"`,
			func(f Facts) bool { return !f.Purgeable.Known }},
		"clang that prints no version": {"Apple clang version 17.0.0 (clang-1700.0.13.5)", "hello",
			func(f Facts) bool { c, _ := f.Tool("clang"); return !c.Version.Known }},
		"wired limit that does not answer": {"iogpu.wired_limit_mb: 0\n", "", func(f Facts) bool {
			return !f.WiredLimit.Known && f.WorkingSet.Certain
		}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if !bytes.Contains(whole, []byte(row.old)) {
				t.Fatalf("the recording has no %q", row.old)
			}
			r, err := ParseRecording(bytes.Replace(whole, []byte(row.old), []byte(row.new), 1))
			if err != nil {
				t.Fatal(err)
			}
			if f := Observe(context.Background(), r, Subject{Home: "/h"}); !row.unknown(f) {
				t.Errorf("still known: %+v", f)
			}
		})
	}
}

// ran records which programs an observation starts.
type ran struct {
	*Recorded
	argv []string
}

func (r *ran) Run(ctx context.Context, argv ...string) ([]byte, error) {
	r.argv = append(r.argv, argv[0])
	return r.Recorded.Run(ctx, argv...)
}

// Stand-ins that open an install dialog, shims and scripts that may install something are never executed.
func TestNothingIsRunThatCouldInstall(t *testing.T) {
	allowed := map[string]bool{"/usr/bin/sw_vers": true, "/usr/bin/vm_stat": true, "/usr/bin/pmset": true,
		"/usr/bin/xcode-select": true, "/usr/sbin/system_profiler": true}
	safeTools := map[string][]string{
		"m4-24":            {},
		"m2-rosetta-exfat": {"/Library/Developer/CommandLineTools/usr/bin/clang"},
		"m5-max-128": {"/Library/Developer/CommandLineTools/usr/bin/git",
			"/Library/Developer/CommandLineTools/usr/bin/clang"},
		"m2-pro-32": {"/Library/Developer/CommandLineTools/usr/bin/git",
			"/Library/Developer/CommandLineTools/usr/bin/clang",
			"/opt/homebrew/Cellar/go/1.26.8/libexec/bin/go"},
	}
	for name, tools := range safeTools {
		r := &ran{Recorded: recording(t, name)}
		Observe(context.Background(), r, subject(name))
		wanted := map[string]bool{}
		for _, tool := range tools {
			wanted[tool] = true
		}
		for _, program := range r.argv {
			if !allowed[program] && !wanted[program] {
				t.Errorf("%s: ran %s", name, program)
			}
			delete(wanted, program)
		}
		for missing := range wanted {
			t.Errorf("%s: did not ask %s", name, missing)
		}
	}
}

func TestWorkingSetPrefersTheDeviceThenTheLimitThenTheShare(t *testing.T) {
	observe := func(extra string) Fact[int64] {
		r, err := ParseRecording([]byte("composed\n-- platform darwin arm64 8 --\n-- sysctl --\nhw.memsize: " +
			"38654705664\n" + extra))
		if err != nil {
			t.Fatal(err)
		}
		return Observe(context.Background(), r, Subject{Home: "/h"}).WorkingSet
	}
	metal := "-- metal --\n" +
		`{"name":"Apple M4 Max","recommended_max_working_set_size":28991029248,"max_buffer_length":1000}` + "\n"
	if got := observe("iogpu.wired_limit_mb: 30000\n" + metal); got.Value != 28991029248 || !got.Certain {
		t.Errorf("with Metal: %+v", got)
	}
	if got := observe("iogpu.wired_limit_mb: 30000\n"); got.Value != 30000<<20 || got.Certain ||
		!strings.Contains(got.How, "estimated") {
		t.Errorf("with a wired limit: %+v", got)
	}
	if got := observe("iogpu.wired_limit_mb: 0\n"); got.Value != 27<<30 || got.Certain ||
		!strings.Contains(got.How, "share") {
		t.Errorf("by share: %+v", got)
	}
}

// macOS takes any number for iogpu.wired_limit_mb, and Metal may repeat it.
func TestMemoryLimitBeyondTheMachinesMemoryIsNotBelieved(t *testing.T) {
	observe := func(extra string) Facts {
		r, err := ParseRecording([]byte("composed\n-- platform darwin arm64 8 --\n-- sysctl --\nhw.memsize: " +
			"38654705664\n" + extra))
		if err != nil {
			t.Fatal(err)
		}
		return Observe(context.Background(), r, Subject{Home: "/h"})
	}
	metal := func(bytes string) string {
		return "-- metal --\n" + `{"name":"Apple M4 Max","recommended_max_working_set_size":` + bytes +
			`,"max_buffer_length":1000}` + "\n"
	}
	for name, extra := range map[string]string{
		"without Metal":                  "iogpu.wired_limit_mb: 40000\n",
		"Metal says the same":            "iogpu.wired_limit_mb: 40000\n" + metal("41943040000"),
		"Metal reduces it to the memory": "iogpu.wired_limit_mb: 40000\n" + metal("38654705664"),
		"Metal alone says more":          metal("41943040000"),
		"a number that overflows bytes":  "iogpu.wired_limit_mb: 9000000000000\n",
	} {
		f := observe(extra)
		if f.WorkingSet.Value != 27<<30 || f.WorkingSet.Certain || !strings.Contains(f.WorkingSet.How, "memory") {
			t.Errorf("%s: %+v", name, f.WorkingSet)
		}
		if f.WiredLimit.Known {
			t.Errorf("%s: the wired limit is %+v", name, f.WiredLimit)
		}
	}
	if f := observe("iogpu.wired_limit_mb: 36864\n"); f.WorkingSet.Value != 36<<30 || !f.WiredLimit.Known {
		t.Errorf("exactly the memory: %+v", f.WorkingSet)
	}
}

// The guess must not exceed any stock value that was seen, and grow with the memory.
func TestEstimateIsBelowWhatWasSeen(t *testing.T) {
	for ram, seen := range map[int64]int64{16 << 30: 11453251584, 32 << 30: 22906503168, 36 << 30: 28991029248,
		64 << 30: 49152 << 20, 128 << 30: 115448717312} {
		if got := EstimateWorkingSet(ram); got > seen {
			t.Errorf("%d GiB: %d is more than %d", ram>>30, got, seen)
		}
	}
	for ram := int64(1 << 30); ram < 600<<30; ram += 1 << 29 {
		if EstimateWorkingSet(ram) < EstimateWorkingSet(ram-1<<29) {
			t.Fatalf("less at %d", ram)
		}
	}
}

func TestProxyPasswordsAreNotShown(t *testing.T) {
	for value, want := range map[string]string{
		"http://user:secret@proxy:3128/x?y=z": "http://proxy:3128",
		"http://proxy:3128":                   "http://proxy:3128",
		"user:secret@proxy:3128":              "(hidden: it holds a name or a password)",
		"://user:secret@[":                    "(hidden: it holds a name or a password)",
		"localhost,127.0.0.1":                 "localhost,127.0.0.1",
	} {
		if got := withoutUser(value); got != want || strings.Contains(got, "secret") {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestImpossibleMetalAnswersAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no JSON": "hello", "no name": `{"recommended_max_working_set_size":1,"max_buffer_length":1}`,
		"no size":  `{"name":"x","max_buffer_length":1}`,
		"negative": `{"name":"x","recommended_max_working_set_size":-1,"max_buffer_length":1}`,
	} {
		if r, err := parseMetal([]byte(text)); err == nil {
			t.Errorf("%s: accepted %+v", name, r)
		}
	}
}

// The real machine: its facts must be right where there is a second way to read them.
func TestFactsOfThisMachineAgreeWithASecondSource(t *testing.T) {
	home := filepath.Join(t.TempDir(), "not", "yet", "there")
	file := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := Observe(context.Background(), System(), Subject{Home: home, Program: os.Args[0], Files: []string{file, home}})
	if f.OS.Value != runtime.GOOS || !f.RAM.Known || f.RAM.Value < 128<<20 {
		t.Errorf("memory or system: %+v %+v", f.OS, f.RAM)
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(file), &stat); err != nil {
		t.Fatal(err)
	}
	if total := int64(stat.Blocks) * int64(stat.Bsize); !f.DiskTotal.Known || f.DiskTotal.Value > total ||
		f.DiskTotal.Value < total/2 {
		t.Errorf("disk %+v, statfs says %d", f.DiskTotal, total)
	}
	if f.Access[0].Fact.Value != "open" || f.Access[1].Fact.Value != "absent" {
		t.Errorf("access: %+v", f.Access)
	}
	if g, ok := f.Tool("go"); !ok || !g.Path.Known {
		t.Errorf("go: %+v", g)
	}
	if _, err := json.Marshal(f); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(home)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("looking at the home made a folder")
	}
}

func TestUnreadableFileIsReported(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root reads every file, so the mode is not tried; the recorded machine covers it")
		return
	}
	file := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(file, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if got := access(System(), runtime.GOOS, file); got.Value != "refused" {
		t.Errorf("%+v", got)
	}
}

func TestRunIsBoundedAndClean(t *testing.T) {
	script := filepath.Join(t.TempDir(), "say")
	write := func(body string) {
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SLIPWAY_TEST_SECRET", "canary")
	t.Setenv("GOTOOLCHAIN", "auto")
	write("env; pwd")
	out, err := System().Run(context.Background(), script)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LC_ALL=C", "GOTOOLCHAIN=local", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("environment lacks %s:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "canary") {
		t.Error("the environment was passed on")
	}
	write("echo one >&2; echo two >&2; exit 7")
	var bad *RunError
	if _, err = System().Run(context.Background(), script); !errors.As(err, &bad) || bad.Status != 7 ||
		bad.Output != "one" {
		t.Errorf("status: %v", err)
	}
	if _, err = System().Run(context.Background(), filepath.Join(filepath.Dir(script), "none")); !errors.As(
		err, &bad) || bad.Status != -1 {
		t.Errorf("a missing program: %v", err)
	}
	write("sleep 60 & sleep 60")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err = System().Run(ctx, script); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that hangs: %v", err)
	}
	write("head -c 6000000 /dev/zero")
	out, err = System().Run(context.Background(), script)
	if err != nil || len(out) != maxOutput {
		t.Errorf("a program that floods: %d bytes, %v", len(out), err)
	}
}

// The child's answer travels as one JSON document; without Metal it is one sentence and status 1.
func TestMetalMainPrintsOneDocument(t *testing.T) {
	var out, errOut bytes.Buffer
	status := MetalMain(&out, &errOut)
	if status == 0 {
		if _, err := parseMetal(out.Bytes()); err != nil {
			t.Error(err)
		}
		return
	}
	if out.Len() != 0 || strings.Count(errOut.String(), "\n") != 1 {
		t.Errorf("out %q, err %q", out.String(), errOut.String())
	}
}
