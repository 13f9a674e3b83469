package wire

import (
	"strings"
	"testing"
)

func TestOriginsAreWholeOrASchemeOfPrograms(t *testing.T) {
	for _, row := range []struct{ text, want, says string }{
		{"http://localhost:3000", "http://localhost:3000", ""},
		{"HTTPS://Chat.Example", "https://chat.example", ""},
		{"https://chat.example:443", "https://chat.example", ""},
		{"http://chat.example:443", "http://chat.example:443", ""},
		{"http://[::1]:3000", "http://[::1]:3000", ""},
		{"http://[::1]", "http://[::1]", ""},
		{"app://", "app://", ""},
		{"vscode-webview://", "vscode-webview://", ""},
		{"tauri://", "tauri://", ""},
		{"tauri://localhost", "tauri://localhost", ""},
		{"*", "", "no patterns"},
		{"http://*", "", "no patterns"},
		{"http://*.example", "", "no patterns"},
		{"http://localhost:*", "", "no patterns"},
		{"app://*", "", "no patterns"},
		{"null", "", "names nobody"},
		{"NULL", "", "names nobody"},
		{"", "", "begins with http://"},
		{"http:", "", "begins with http://"},
		{"file://", "", "begins with http://"},
		{"chrome-extension://", "", "begins with http://"},
		{"localhost:3000", "", "begins with http://"},
		{"http://", "", "the host must be"},
		{"https://", "", "the host must be"},
		{"http://:80", "", "the host must be"},
		{"http://a_b", "", "the host must be"},
		{"https://bücher.example", "", "the host must be"},
		{"http://localhost:3000/", "", "without a path"},
		{"https://chat.example/page", "", "without a path"},
		{"http://me@chat.example", "", "without a path"},
		{"http://chat.example#x", "", "without a path"},
		{"app://x/y", "", "without a path"},
		{"http://a, http://b", "", "without a path"},
		{"http://localhost:0", "", "from 1 to 65535"},
		{"http://localhost:65536", "", "from 1 to 65535"},
		{"http://localhost:080", "", "from 1 to 65535"},
	} {
		got, err := ReadOrigin(row.text)
		if row.says == "" && (err != nil || got != row.want) || row.says != "" &&
			(err == nil || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%q gives %q, %v", row.text, got, err)
		}
	}
}

func TestHostsAreNamesWithoutAPort(t *testing.T) {
	if got, err := ReadHost("Host.Docker.Internal"); err != nil || got != "host.docker.internal" {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"", "*", "mac.local:80", "http://mac.local", "a,b", "a b", ".local", "mac/local"} {
		if got, err := ReadHost(text); err == nil || !strings.Contains(err.Error(), "without a port") {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
}
