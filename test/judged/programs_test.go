package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The tests run the programs as they are: slipway, slipway-server with Pocket on the CPU, and this folder's double.
var programs string

func TestMain(m *testing.M) {
	code := 1
	defer func() { os.Exit(code) }()
	dir, err := os.MkdirTemp("", "judged")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	programs = dir
	build := exec.Command("go", "build", "-o", dir+"/", "./cmd/slipway", "./cmd/slipway-server", "./test/judged")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return
	}
	code = m.Run()
}

// double starts this folder's server in a mode and returns its address.
func double(t *testing.T, mode string) string {
	t.Helper()
	return started(t, "judged", "--mode", mode)
}

// pocket starts the real server with Pocket and returns its address.
func pocket(t *testing.T, args ...string) string {
	t.Helper()
	model, err := filepath.Abs("../../manifests/pocket")
	if err != nil {
		t.Fatal(err)
	}
	return started(t, "slipway-server", append([]string{"serve", "--model", model, "--port", "0"}, args...)...)
}

// started runs a server until the test ends and returns the address after "ready at ".
func started(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs, name), args...)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		reader.Close()
	})
	var mu sync.Mutex
	var said strings.Builder
	address := make(chan string, 1)
	go func() {
		defer close(address)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			mu.Lock()
			said.WriteString(lines.Text() + "\n")
			mu.Unlock()
			if _, at, ok := strings.Cut(lines.Text(), "ready at "); ok {
				address <- at
			}
		}
	}()
	select {
	case at := <-address:
		if at != "" {
			return at
		}
	case <-time.After(time.Minute):
	}
	mu.Lock()
	defer mu.Unlock()
	t.Fatalf("%s did not get ready:\n%s", name, said.String())
	return ""
}

// outcome is how a run of slipway ended.
type outcome struct {
	code        int
	out, errOut string
}

func (o outcome) String() string { return fmt.Sprintf("exit code %d\n%s\n%s", o.code, o.out, o.errOut) }

// slipway runs one command to its end, in a home of its own that nothing is set up in.
func slipway(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs, "slipway"), args...)
	dir := t.TempDir()
	cmd.Dir = dir
	cmd.Env = append([]string{"HOME=" + dir, "PATH=/usr/bin:/bin", "SLIPWAY_HOME=" + filepath.Join(dir, "home")},
		env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// document runs a command with --json, holds what it prints against the verb's schema, and reads it.
func document[T any](t *testing.T, verb string, args ...string) (data T, code int) {
	t.Helper()
	o := slipway(t, nil, append(append(strings.Fields(verb), "--json"), args...)...)
	compiler := jsonschema.NewCompiler()
	schema, err := jsonschema.UnmarshalJSON(
		strings.NewReader(slipway(t, nil, "schema", verb).out))
	if err == nil {
		err = compiler.AddResource("schema.json", schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(o.out)) // refuses a second document
	if err == nil {
		err = compiled.Validate(value)
	}
	if err != nil {
		t.Fatalf("%v\n%v", err, o)
	}
	var envelope struct{ Data T }
	if err := json.Unmarshal([]byte(o.out), &envelope); err != nil {
		t.Fatal(err)
	}
	return envelope.Data, o.code
}
