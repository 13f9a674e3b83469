package cpurun

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"

	"slipway/atomicfile"
)

//go:embed shim
var shim embed.FS

// ErrNoCompiler means that clang 22 is not installed.
var ErrNoCompiler = errors.New("clang++-22 is not installed (Debian: clang-22 libclang-rt-22-dev libstdc++-12-dev " +
	"libc6-dev), so kernels cannot be run on the CPU")

// CompileError is a source that clang refuses.
type CompileError struct{ Name, Text string }

func (e *CompileError) Error() string { return fmt.Sprintf("%s does not compile:\n%s", e.Name, e.Text) }

// Need ends the test when there is no compiler: it fails where CI is "true" and skips, with a sentence, elsewhere.
func Need(t interface {
	Helper()
	Fatal(...any)
	Skip(...any)
}) {
	t.Helper()
	_, err := compiler()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

func compiler() (string, error) {
	path, err := exec.LookPath("clang++-22")
	if err != nil {
		return "", ErrNoCompiler
	}
	return path, nil
}

// flags: x86-64-v3 for its half conversions; compiler-rt because other runtimes lack the bf16 conversion.
func flags() []string {
	f := []string{"-std=c++17", "-O2", "-fPIC", "-ftls-model=initial-exec", "-Wall", "-Wno-unknown-attributes",
		"-Wno-unused", "-Wno-duplicate-decl-specifier", "-Wno-return-type-c-linkage"}
	if runtime.GOARCH == "amd64" {
		f = append(f, "-march=x86-64-v3")
	}
	return f
}

// Compile builds a source into a library. Messages use name. Built libraries are kept in the user's cache, by content.
func Compile(name, text string) (*Library, error) {
	path, source, err := build(name, text)
	if err != nil {
		return nil, err
	}
	return open(name, path, source)
}

// Object builds a source as Compile does and returns the path of the shared object, for a program that opens it by
// itself: it exports msl_run, mslk_KERNEL, mslc_INDEX and msls_STRUCT.
func Object(name, text string) (string, error) {
	path, _, err := build(name, text)
	return path, err
}

// Shared builds plain C++ into a shared object and returns its path.
func Shared(name, code string) (string, error) {
	clang, err := compiler()
	if err != nil {
		return "", err
	}
	dir, err := toolDir()
	if err != nil {
		return "", err
	}
	return shared(name, dir, clang, code)
}

// build returns the path of the shared object of text.
func build(name, text string) (string, *Source, error) {
	clang, err := compiler()
	if err != nil {
		return "", nil, err
	}
	source, err := Parse(text)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	code, err := source.cpp(name)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	dir, err := toolDir()
	if err != nil {
		return "", nil, err
	}
	runtimeObject := filepath.Join(dir, "runtime.o")
	if err := produce(name, runtimeObject, clang,
		append(flags(), "-I"+dir, "-c", filepath.Join(dir, "runtime.cpp"))...); err != nil {
		return "", nil, err
	}
	output, err := shared(name, dir, clang, code, "-I"+dir, runtimeObject)
	return output, source, err
}

// shared compiles code into an object named by its content.
func shared(name, dir, clang, code string, more ...string) (string, error) {
	sum := sha256.Sum256([]byte(code))
	input := filepath.Join(dir, hex.EncodeToString(sum[:12])+".cpp")
	if err := writeOnce(input, []byte(code)); err != nil {
		return "", err
	}
	output := input[:len(input)-len(".cpp")] + ".so"
	args := append(append(flags(), "-shared", "--rtlib=compiler-rt", input), more...)
	return output, produce(name, output, clang, append(args, "-lpthread")...)
}

var toolOnce = sync.OnceValues(makeToolDir)

// toolDir is the cache folder of this version of the shim and its flags, with the shim's files in it.
func toolDir() (string, error) { return toolOnce() }

func makeToolDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	sum := sha256.New()
	fmt.Fprintln(sum, flags())
	entries, err := shim.ReadDir("shim")
	if err != nil {
		return "", err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		data, err := shim.ReadFile("shim/" + e.Name())
		if err != nil {
			return "", err
		}
		files[e.Name()] = data
		fmt.Fprintln(sum, e.Name(), len(data))
		sum.Write(data)
	}
	dir := filepath.Join(base, "slipway-kernels-on-cpu", hex.EncodeToString(sum.Sum(nil)[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, data := range files {
		if err := writeOnce(filepath.Join(dir, name), data); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// produce makes output by clang unless it is there. Another process may do the same: the file appears whole, by rename.
func produce(name, output, clang string, args ...string) error {
	if _, err := os.Stat(output); err == nil {
		return nil
	}
	part, err := os.CreateTemp(filepath.Dir(output), "part-*")
	if err != nil {
		return err
	}
	part.Close()
	defer os.Remove(part.Name())
	text, err := exec.Command(clang, append(args, "-o", part.Name())...).CombinedOutput()
	if err != nil || len(text) > 0 {
		return &CompileError{Name: name, Text: string(text)}
	}
	return os.Rename(part.Name(), output)
}

// writeOnce writes a file that is named for its content. Another process may do the same.
func writeOnce(path string, data []byte) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return atomicfile.Write(path, data, 0o600)
}
