package neighbor

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

// kind is what slipway knows of one server: facts, no machinery. Sources and versions: docs/neighbours.md.
type kind struct {
	id    string
	title string
	ports []int // where it listens by default; a port never identifies

	// runs reports, from executable and arguments, whether a process may be this server.
	runs func(c command) bool
	// answers reports, from HTTP, whether a server is this one. It asks few paths, all of them cheap.
	answers func(l *look) bool
	// claims is the pid that the server says it has, where it says so; another pid than the listener's is a refusal.
	claims func(l *look) (int, bool)
	// models are the loaded ones. ok is false where that is not known.
	models func(l *look) (models []record.Model, ok bool)
	// idle adds to the sample what the server says of its own work.
	idle func(l *look, t *sample)
	// exactSockets: the process holds a TCP socket exactly while it works, in any state (no idle endpoint at all).
	exactSockets bool
	// refuse is why this one is not stopped by slipway, in words that say what a person can do; empty if it may be.
	refuse func(l *look, c command) string

	// signal ends the server cleanly; 0 where slipway never signals it.
	signal syscall.Signal
	// unload takes models out of memory and leaves the server; load is the way back. Both or neither.
	unload func(l *look, m record.Model) error
	load   func(l *look, m record.Model) error
	// socket is the application's control socket relative to the user's home, for an application that owns the server.
	socket string
	// needsFolder: it finds its own files relative to the working folder.
	needsFolder bool
	// losses are the settings of loaded models that its way to load again cannot give back; nil: none.
	losses func(models []record.Model) []string
}

// kinds in the order in which command lines are compared: the more specific first.
var kinds = []*kind{&slipwayServer, &mtplx, &omlx, &qmlx, &rapidMLX, &vllmMLX, &lmStudio, &ollama, &dflash, &mlxLM,
	&ds4, &llamaCPP, &kapitsa, &splash}

func kindByID(id string) *kind {
	for _, k := range kinds {
		if k.id == id {
			return k
		}
	}
	return nil
}

// Kinds are the ids of the servers that slipway recognises, sorted.
func Kinds() []string {
	var ids []string
	for _, k := range kinds {
		ids = append(ids, k.id)
	}
	slices.Sort(ids)
	return ids
}

// KindNamed is the id of the kind that is named by its id or, in any case, by its title: llama-server is llama.cpp.
func KindNamed(name string) (id string, ok bool) {
	for _, k := range kinds {
		if name == k.id || strings.EqualFold(name, k.title) {
			return k.id, true
		}
	}
	return "", false
}

// command is a process as kinds see it: wrappers such as caffeinate and the interpreter are taken off the front.
type command struct {
	exe  string
	argv []string
}

var interpreters = []string{"python", "Python", "node", "ruby"}

func commandOf(d process.Details) command {
	argv := d.Argv
	if len(argv) > 0 && path.Base(argv[0]) == "caffeinate" {
		argv = argv[1:]
		for len(argv) > 0 && strings.HasPrefix(argv[0], "-") {
			argv = argv[1:]
		}
	}
	return command{exe: d.Exe, argv: argv}
}

// named reports whether the program is called one of names: the executable itself, or the script that an interpreter
// runs.
func (c command) named(names ...string) bool {
	if len(c.argv) == 0 {
		return slices.Contains(names, path.Base(c.exe))
	}
	program := path.Base(c.argv[0])
	// A process title keeps the name in front and may go on after it.
	title, _, _ := strings.Cut(program, " ")
	if slices.Contains(names, program) || slices.Contains(names, strings.TrimSuffix(title, ":")) {
		return true
	}
	if c.interpreted() && len(c.argv) > 1 {
		return slices.Contains(names, path.Base(c.argv[1]))
	}
	return false
}

func (c command) interpreted() bool {
	if len(c.argv) == 0 {
		return false
	}
	program := path.Base(c.argv[0])
	return slices.ContainsFunc(interpreters, func(i string) bool { return strings.HasPrefix(program, i) })
}

// module reports whether an interpreter runs one of the modules with -m.
func (c command) module(names ...string) bool {
	for i, arg := range c.argv {
		if arg == "-m" && i+1 < len(c.argv) && c.interpreted() {
			return slices.Contains(names, c.argv[i+1])
		}
	}
	return false
}

// verb reports whether one of the words is among the arguments.
func (c command) verb(words ...string) bool {
	for i, arg := range c.argv {
		if i > 0 && slices.Contains(words, arg) {
			return true
		}
	}
	return false
}

// sample is one moment of a server's work. Busy beats unknown, unknown beats idle.
type sample struct {
	at            time.Time
	busy, unknown []string // why it is not idle
	counters      map[string]float64
	cpu           time.Duration // of the process and its descendants
	cpuKnown      bool
	clients       []string
	idleSeconds   *float64
}

func (t *sample) isBusy(format string, args ...any) {
	t.busy = append(t.busy, fmt.Sprintf(format, args...))
}
func (t *sample) isUnknown(format string, args ...any) {
	t.unknown = append(t.unknown, fmt.Sprintf(format, args...))
}

// asked reports whether the reply can be used at all, and notes why not.
func (t *sample) asked(r reply, path string) bool {
	switch {
	case r.silent:
		t.isUnknown("%s did not answer in time", path)
	case r.status == 0:
		t.isUnknown("%s did not answer", path)
	case r.protected():
		t.isUnknown("%s wants a key", path)
	case r.status != 200:
		t.isUnknown("%s answered %d", path, r.status)
	case r.json == nil:
		t.isUnknown("%s did not answer with JSON", path)
	default:
		return true
	}
	return false
}

// zero demands a number that is there and 0.
func (t *sample) zero(r reply, field ...string) {
	name := strings.Join(field, ".")
	n, ok := r.number(field...)
	switch {
	case !ok || n < 0:
		t.isUnknown("%s is missing", name)
	case n > 0:
		t.isBusy("%s is %v", name, n)
	}
}

// off demands a flag that is there and false.
func (t *sample) off(r reply, field ...string) {
	name := strings.Join(field, ".")
	on, ok := r.flag(field...)
	switch {
	case !ok:
		t.isUnknown("%s is missing", name)
	case on:
		t.isBusy("%s", name)
	}
}

// counter demands a number and remembers it: it has to stay the same from sample to sample.
func (t *sample) counter(r reply, field ...string) {
	name := strings.Join(field, ".")
	n, ok := r.number(field...)
	if !ok {
		t.isUnknown("%s is missing", name)
		return
	}
	t.counters[name] = n
}

func modelsOf(ids ...string) []record.Model {
	var list []record.Model
	for _, id := range ids {
		if id != "" {
			list = append(list, record.Model{ID: id})
		}
	}
	return list
}
