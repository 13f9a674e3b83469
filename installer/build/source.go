package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/fault"
	"slipway/manifests"
)

// serverPackage is what is built, relative to the source.
const serverPackage = "./cmd/slipway-server"

// sourceRoots is everything of this module that the server program is made of. A test compares it with `go list`.
var sourceRoots = []string{"go.mod", "go.sum", "atomicfile", "cmd/slipway-server", "engine", "metal", "mtphead",
	"profiles", "safetensors", "termtext", "units", "wire"}

// ErrNoSource says that no source of slipway-server is available.
var ErrNoSource = fault.New(fault.Fault{Class: fault.Human, Step: fault.InstallGo},
	"no source of slipway-server was found")

// Source is a source tree of this module.
type Source struct {
	Dir       string           // absolute
	Digest    manifests.Digest // of every file that goes into the server
	GoVersion string           // the language version that go.mod asks for: "1.26.0"
}

// FindSource looks in the folder that was named, else where this program was compiled (recorded), else upwards from
// the working folder. A named folder that is none is an error; otherwise ErrNoSource.
func FindSource(named, recorded, workingDir string) (Source, error) {
	if named != "" {
		abs, err := filepath.Abs(named)
		if err != nil {
			return Source{}, err
		}
		if !isSource(abs) {
			return Source{}, fmt.Errorf("%s is not a source tree of slipway (go.mod of module slipway, "+
				"cmd/slipway-server): %w",
				abs, ErrNoSource)
		}
		return look(abs)
	}
	if filepath.IsAbs(recorded) && isSource(recorded) {
		return look(recorded)
	}
	for at := workingDir; at != "" && filepath.IsAbs(at); at = filepath.Dir(at) {
		if isSource(at) {
			return look(at)
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return Source{}, ErrNoSource
}

func isSource(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || modLine(string(mod), "module") != "slipway" {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(serverPackage)))
	return err == nil && info.IsDir()
}

// modLine finds a one-word directive of go.mod.
func modLine(mod, directive string) string {
	for line := range strings.Lines(mod) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == directive {
			return fields[1]
		}
	}
	return ""
}

// look hashes the tree: "PATH NUL SHA-256 LF" for every file, sorted by path. Tests and test data stay out, and so does
// what git and editors keep (names that begin with a dot or an underscore), as for the go command.
func look(dir string) (Source, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return Source{}, err
	}
	var files []string
	for _, root := range sourceRoots {
		err := filepath.WalkDir(filepath.Join(dir, filepath.FromSlash(root)),
			func(p string, d fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) {
					return nil // a part that this source does not have
				}
				if err != nil {
					return err
				}
				name := d.Name()
				ignored := strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
				if d.IsDir() {
					if ignored || name == "testdata" {
						return fs.SkipDir
					}
					return nil
				}
				if !ignored && !strings.HasSuffix(name, "_test.go") && d.Type().IsRegular() {
					files = append(files, p)
				}
				return nil
			})
		if err != nil {
			return Source{}, err
		}
	}
	slices.Sort(files)
	tree := sha256.New()
	for _, file := range files {
		sum, _, err := HashFile(file)
		if err != nil {
			return Source{}, err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return Source{}, err
		}
		fmt.Fprintf(tree, "%s\x00%s\n", filepath.ToSlash(rel), sum.Hex())
	}
	return Source{Dir: dir, Digest: manifests.DigestOf([32]byte(tree.Sum(nil))), GoVersion: modLine(string(mod), "go")},
		nil
}

// HashFile is a file's SHA-256 and size in bytes.
func HashFile(path string) (manifests.Digest, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return manifests.DigestOf([32]byte(sum.Sum(nil))), n, err
}

// EngineID names what a build gives: 16 hex digits over source, toolchain, target and the way it is built.
func EngineID(source manifests.Digest, goVersion, target string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{"slipway-server", string(source), goVersion, target,
		strings.Join(flags, " ")}, "\n")))
	return hex.EncodeToString(sum[:8])
}
