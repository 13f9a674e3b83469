// Package machine observes one machine, once, and gives facts without advice. Every fact says whether it is known,
// whether it is certain, and how it was learnt. Nothing here installs, writes, or runs a program that could: macOS's
// stand-ins for tools and version managers' shims are named, never executed.
package machine

// Fact is one observation. Value means nothing unless Known. Certain is false for estimates and for values that the
// system itself only estimates. How is a clause for people ("sysctl hw.memsize"), or why the fact is not known.
type Fact[T any] struct {
	Value   T      `json:"value"`
	Known   bool   `json:"known"`
	Certain bool   `json:"certain"`
	How     string `json:"how"`
}

func known[T any](v T, how string) Fact[T] {
	return Fact[T]{Value: v, Known: true, Certain: true, How: how}
}

func guessed[T any](v T, how string) Fact[T] { return Fact[T]{Value: v, Known: true, How: how} }

func unknown[T any](why string) Fact[T] { return Fact[T]{How: why} }

// Facts is everything that is known of the machine, at one moment. Sizes are bytes.
type Facts struct {
	OS         Fact[string] `json:"os"`         // "darwin", "linux": the system that this program was built for
	Arch       Fact[string] `json:"arch"`       // of the machine: "arm64" also for a translated x86 program
	Translated Fact[bool]   `json:"translated"` // this program runs under Rosetta
	System     Fact[string] `json:"system"`     // "macOS", or the Linux distribution's name
	Version    Fact[string] `json:"version"`    // "26.1", "12"
	Build      Fact[string] `json:"build"`      // macOS build number; kernel release on Linux
	Boot       Fact[string] `json:"boot"`       // identity of this boot, the same until the next

	Model            Fact[string]      `json:"model"`      // "Mac16,9"
	Chip             Fact[string]      `json:"chip"`       // "Apple M4 Max"
	Generation       Fact[int]         `json:"generation"` // 4
	CoreLevels       Fact[[]CoreLevel] `json:"core_levels"`
	PerformanceCores Fact[int]         `json:"performance_cores"` // of the fastest level
	EfficiencyCores  Fact[int]         `json:"efficiency_cores"`  // of the slowest level, 0 when all are alike
	GPUCores         Fact[int]         `json:"gpu_cores"`

	RAM             Fact[int64]  `json:"ram_bytes"`
	MemoryLimit     Fact[int64]  `json:"memory_limit_bytes"`     // of a container; not known where there is none
	MemoryAvailable Fact[int64]  `json:"memory_available_bytes"` // what could be had now: always an estimate
	Pressure        Fact[string] `json:"memory_pressure"`        // "normal", "warning", "critical"

	MetalDevice Fact[string] `json:"metal_device"`
	// recommended maximum; certain only when Metal itself said so
	WorkingSet Fact[int64] `json:"metal_working_set_bytes"`
	MaxBuffer  Fact[int64] `json:"metal_max_buffer_bytes"`
	WiredLimit Fact[int64] `json:"wired_limit_bytes"` // set by the user through iogpu.wired_limit_mb; 0: not set

	Power        Fact[string] `json:"power"` // "ac", "battery"
	Battery      Fact[int]    `json:"battery_percent"`
	LowPower     Fact[bool]   `json:"low_power_mode"`
	SleepMinutes Fact[int]    `json:"sleep_minutes"` // idle time until the system sleeps; 0: never

	Home       string       `json:"home"`
	FileSystem Fact[string] `json:"file_system"` // of the home's volume: "apfs", "exfat", "smbfs", "ext4"
	DiskTotal  Fact[int64]  `json:"disk_total_bytes"`
	DiskFree   Fact[int64]  `json:"disk_free_bytes"`      // statfs: what may be written now
	Purgeable  Fact[int64]  `json:"disk_purgeable_bytes"` // what macOS may free by itself, not counted in DiskFree

	Access      []Access     `json:"access"`      // one byte of each file that was named
	Quarantined Fact[bool]   `json:"quarantined"` // our own program, downloaded by a browser
	DevTools    Fact[string] `json:"dev_tools"`   // folder of Xcode or its Command Line Tools; known and empty: none
	Tools       []Tool       `json:"tools"`
	Proxies     []Proxy      `json:"proxies"`
}

// CoreLevel is a kind of core, the fastest first.
type CoreLevel struct {
	Name  string `json:"name"`
	Cores int    `json:"cores"`
}

// Access says whether a file could be opened and one byte read. Value "open", "absent", "refused" (permission), or
// "privacy" (macOS denies this program the folder, whatever the file's mode).
type Access struct {
	Path string       `json:"path"`
	Fact Fact[string] `json:"access"`
}

// Tool is a program for building. Path known and empty: not there. Version is unknown where running it was not safe.
type Tool struct {
	Name    string       `json:"name"`
	Path    Fact[string] `json:"path"`
	Version Fact[string] `json:"version"`
}

// Proxy is a proxy variable of the environment, user and password removed.
type Proxy struct {
	Variable string `json:"variable"`
	Value    string `json:"value"`
}

// Tool finds a tool by name.
func (f Facts) Tool(name string) (Tool, bool) {
	for _, t := range f.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// AppleSilicon says whether this is a Mac with Apple's own chip.
func (f Facts) AppleSilicon() bool { return f.OS.Value == "darwin" && f.Arch.Value == "arm64" }
