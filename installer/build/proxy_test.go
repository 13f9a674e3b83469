package build

import (
	"slices"
	"testing"
)

// The go command gets its modules through the proxy that ALL_PROXY names, where no other variable names one.
func TestModulesComeThroughAllProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "all_proxy"} {
		t.Setenv(name, "")
	}
	t.Setenv("ALL_PROXY", "socks5://proxy.example:1080")
	if env := environment("", ""); !slices.Contains(env, "HTTPS_PROXY=socks5://proxy.example:1080") {
		t.Errorf("the proxy is not passed on: %q", env)
	}
	t.Setenv("https_proxy", "http://other.example:3128")
	if env := environment("", ""); slices.Contains(env, "HTTPS_PROXY=socks5://proxy.example:1080") {
		t.Errorf("ALL_PROXY wins over https_proxy: %q", env)
	}
}
