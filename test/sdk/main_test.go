// Package sdk_test drives a real slipway-server with the clients of OpenAI and Anthropic for Go and Node. It is a
// module of its own, so that they are nobody's dependencies.
package sdk_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// address of the server that TestMain started, without /v1.
var address string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "slipway-sdk-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binary := filepath.Join(dir, "slipway-server")
		build := exec.Command("go", "build", "-o", binary, "./cmd/slipway-server")
		build.Dir = "../.."
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(string(out))
		}
		server := exec.Command(binary, "serve", "--model", "../../manifests/pocket", "--port", "0")
		stderr, err := server.StderrPipe()
		if err != nil {
			panic(err)
		}
		if err := server.Start(); err != nil {
			panic(err)
		}
		ready := make(chan string, 1)
		go func() {
			defer close(ready)
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				if at, found := strings.CutPrefix(lines.Text(), "slipway-server: ready at "); found {
					ready <- strings.TrimSuffix(at, "/v1")
				}
			}
		}()
		address = <-ready
		if address == "" {
			panic("the server ended before it was ready")
		}
		code := m.Run()
		if dir, _ := nodeFolder(); dir != "" {
			os.RemoveAll(dir)
		}
		server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			println("the server did not end cleanly: " + err.Error())
			code = max(code, 1)
		}
		return code
	}())
}
