package machine

import (
	"bytes"
	"context"
	"path"
	"regexp"
	"strings"
)

// wantedTools are those that a build may need, with the argument that makes each print its version.
var wantedTools = []struct{ name, argument string }{
	{"git", "--version"}, {"go", "version"}, {"clang", "--version"}, {"cmake", "--version"},
}

var versionForm = regexp.MustCompile(`\d+\.\d+(?:\.\d+)*`)

// tools finds tools on PATH and asks their version where running them is safe.
//
// On macOS /usr/bin/git and /usr/bin/clang are stand-ins that open an install dialog when there are no Command Line
// Tools: they count as the program in the developer folder, or as none. Version managers' shims (asdf, mise, pyenv and
// the like) and other scripts may install something when run: they are named and not run.
func tools(ctx context.Context, src Sources, goos string, developer Fact[string]) []Tool {
	var found []Tool
	for _, want := range wantedTools {
		t := Tool{Name: want.name}
		where := src.Look(want.name)
		if goos == "darwin" && isStandIn(where) {
			if developer.Value == "" {
				where = ""
				t.Path = known("", "only macOS's stand-in, and no Command Line Tools")
			} else {
				where = developer.Value + "/usr/bin/" + want.name
				if strings.HasSuffix(developer.Value, ".app/Contents/Developer") && want.name == "clang" {
					where = developer.Value + "/Toolchains/XcodeDefault.xctoolchain/usr/bin/clang"
				}
			}
		}
		switch {
		case where != "":
			t.Path = known(where, "PATH")
			t.Version = toolVersion(ctx, src, want.name, where, want.argument)
		default:
			if t.Path.How == "" {
				t.Path = known("", "not on PATH")
			}
			t.Version = unknown[string]("it is not there")
		}
		found = append(found, t)
	}
	return found
}

func isStandIn(where string) bool { return strings.HasPrefix(where, "/usr/bin/") }

func toolVersion(ctx context.Context, src Sources, name, where, argument string) Fact[string] {
	if !path.IsAbs(where) {
		return unknown[string]("its path is not absolute, so it is not run")
	}
	for _, element := range []string{"/shims/", "/.asdf/", "/mise/", "/.mise/", "/.pyenv/", "/.rbenv/"} {
		if strings.Contains(where, element) {
			return unknown[string]("a version manager's shim may install something, so it is not run")
		}
	}
	if !strings.HasPrefix(path.Base(where), name) {
		return unknown[string]("it is a link to " + path.Base(where) + ", which is no " + name + ", so it is not run")
	}
	head, err := src.Head(where, 4)
	switch {
	case err != nil:
		return unknown[string](err.Error())
	case bytes.HasPrefix(head, []byte("#!")):
		return unknown[string]("a script may do anything, so it is not run")
	}
	if name == "go" { // running it would leave its telemetry's folder in the person's own
		root, _ := src.Head(path.Join(path.Dir(path.Dir(where)), "VERSION"), 32)
		if version := versionForm.Find(root); version != nil && bytes.HasPrefix(root, []byte("go")) {
			return known(string(version), "GOROOT/VERSION")
		}
	}
	out, err := src.Run(ctx, where, argument)
	if err != nil {
		return unknown[string](err.Error())
	}
	first, _, _ := bytes.Cut(out, []byte("\n"))
	version := versionForm.Find(first)
	if version == nil {
		return unknown[string]("it prints no version")
	}
	return known(string(version), path.Base(where)+" "+argument)
}
