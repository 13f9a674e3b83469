package slipway_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// A server of the person holds the usual ports while the tests run, and the person's home is not the tests'. So a test
// takes port 0, or a port that it found free, and a home of its own.
func TestNoTestUsesAFixedPortOrThePersonsHome(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "*_test.go", "test/*.go",
		"cmd/slipway/testdata/script/*.txt", "cmd/slipway/testdata/neighbors/*.txt",
		"cmd/slipway/testdata/own_kind/*.txt", "scripts/*.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	if len(files) < 200 {
		t.Fatalf("%d files, so this test guards nothing", len(files))
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) || file == "ports_test.go" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(source), "\n") {
			for what, pattern := range fixed {
				found := pattern.FindString(line)
				if script := !strings.HasSuffix(file, ".go"); script != strings.HasPrefix(what, "a script") {
					continue
				}
				if found != "" && !harmless[file+" "+found] {
					t.Errorf("%s:%d: %s: %s", file, i+1, what, found)
				}
			}
		}
	}
}

var fixed = map[string]*regexp.Regexp{
	"opens a fixed port":          regexp.MustCompile(`(Listen|ListenPacket|Dial|DialTimeout|DialContext)\([^)]*"[^"]*:[1-9]\d+"`),
	"gives a fixed port":          regexp.MustCompile(`"--(monitor-)?port",\s*"\d{4,5}"`),
	"a script gives a fixed port": regexp.MustCompile(`slipway.* --(monitor-)?port[ =]\d+`),
	"uses the person's home":      regexp.MustCompile(`os\.UserHomeDir\(|user\.Current\(`),
}

// harmless are lines that open nothing: the command is refused before.
var harmless = map[string]bool{
	`cmd/slipway/testdata/script/usage.txt slipway setup --port 70000`:                    true,
	`cmd/slipway/testdata/script/usage.txt slipway setup --port 0`:                        true,
	`cmd/slipway/testdata/script/usage.txt slipway setup --monitor-port 0`:                true,
	`cmd/slipway/testdata/script/usage.txt slipway setup --port 8010 --monitor-port 8010`: true,
	`cmd/slipway-server/refused_settings_test.go "--port", "70000"`:                       true,
	`cmd/slipway/screens_test.go "--port", "8018"`:                                        true, // it is printed
	`cmd/slipway-server/monitor_test.go "--port", "18123"`:                                true,
}

func TestFixedPortIsSeen(t *testing.T) {
	for line, want := range map[string]bool{
		`net.Listen("tcp", "127.0.0.1:8010")`: true, `net.Listen("tcp", "127.0.0.1:0")`: false,
		`r.run(nil, "up", "--port", "8008")`: true, `serve("--port", "0")`: false,
		"exits 0 slipway setup --yes --port 8008": true, "exits 0 slipway setup --yes --port $PORT": false,
		"home, err := os.UserHomeDir()": true,
	} {
		seen := false
		for _, pattern := range fixed {
			seen = seen || pattern.MatchString(line)
		}
		if seen != want {
			t.Errorf("%s: %v", line, seen)
		}
	}
}
