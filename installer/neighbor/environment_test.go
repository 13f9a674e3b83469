package neighbor

import (
	"slices"
	"strings"
	"testing"
)

// The allow-list is that of the shared facts: PATH, HOME, LANG, VIRTUAL_ENV and four prefixes, and no value with a
// secret.
func TestOnlyTheAllowListIsWrittenDown(t *testing.T) {
	const secret = "very-secret-value"
	written := []string{"PATH=/bin", "HOME=/home/я", "LANG=C.UTF-8", "VIRTUAL_ENV=/v",
		"SLIPWAY_SERVER_LOG=/h/logs/server.log", "HF_HOME=/hf", "HF_HUB_CACHE=/hf/hub", "MTPLX_DEPTH=2",
		"OLLAMA_HOST=127.0.0.1:1",
		"OMLX_PORT=1", "HF_ENDPOINT=https://hub.example/x?y=1", "MTPLX_ARGS=--max-tokens 5 --depth=2", "OLLAMA_EMPTY="}
	names := []string{"PYTHONPATH=/x", "XDG_CACHE_HOME=/c", "VLLM_X=1", "LLAMA_ARG_CTX=1", "DS4_LOCK_FILE=/l",
		"RAPID_X=1", "SLIPWAY_HOME=/s", "LC_ALL=C", "USER=me", "TMPDIR=/t",
		"HF_TOKEN=" + secret, "MTPLX_API_KEY=" + secret, "OLLAMA_BEARER=" + secret, "OMLX_CRED=" + secret, "HF_PWD=" +
			secret, "PATH_AUTH=" + secret,
		"HF_ENDPOINT2=https://me:" + secret + "@hub.example", "OLLAMA_HEADER=Authorization: Bearer " + secret,
		"OLLAMA_H=bearer " + secret, "HF_X=hf_abcdefghijklmnop",
		"OMLX_X=sk-abcdefgh12345678", "OMLX_ARGS=--api-key " + secret, "OMLX_ARGS2=serve --api-key=" + secret,
		"MTPLX_URL=https://x.example/?X-Amz-Signature=" + secret,
		"MTPLX_Q=https://x.example/?token=" + secret, "MTPLX_GH=ghp_abcdefghijklmnopqrstuvwx",
		"OMLX_JWT=eyJhbGciOiJIUzI1NiJ9.eyJzdWIi", "HF_AWS=AKIAABCDEFGHIJKLMNOP",
		"HF_PEM=-----BEGIN RSA PRIVATE KEY-----"}
	values, kept := splitEnvironment(slices.Concat(written, names, []string{"no equals sign", "=odd"}))
	for _, entry := range written {
		name, value, _ := strings.Cut(entry, "=")
		if got, ok := values[name]; !ok || got != value {
			t.Errorf("%s is not written down", name)
		}
	}
	if len(values) != len(written) {
		t.Errorf("written down: %q", values)
	}
	for _, entry := range names {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(kept, name) {
			t.Errorf("the name %s is not kept", name)
		}
	}
}

func TestVariablesOfTheTerminalAreNoLoss(t *testing.T) {
	harmless := []string{"SSH_AUTH_SOCK", "XAUTHORITY", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "TERM",
		"TERM_PROGRAM", "SHLVL", "_", "LC_CTYPE", "USER", "TMPDIR",
		"__CF_USER_TEXT_ENCODING", "__CFBundleIdentifier", "XPC_FLAGS", "XPC_SERVICE_NAME", "HOMEBREW_PREFIX",
		"COLORTERM", "VSCODE_PID", "DBUS_SESSION_BUS_ADDRESS"}
	real := []string{"PYTHONPATH", "XDG_CACHE_HOME", "LLAMA_ARG_CTX", "OMP_NUM_THREADS", "HF_TOKEN", "OPENAI_API_KEY",
		"METAL_DEVICE_WRAPPER_TYPE", "DYLD_LIBRARY_PATH", "MTPLX_MAX_TOKENS", "http_proxy"}
	missed, rest := withoutValue(slices.Concat(harmless, real))
	if !slices.Equal(missed, real) || !slices.Equal(rest, harmless) {
		t.Errorf("losses %q\nrest %q", missed, rest)
	}
	if odd, _ := withoutValue([]string{"A) and idle (\x1b[2J"}); len(odd) != 1 || odd[0] != `"A) and idle (?[2J"` {
		t.Errorf("an odd name is shown as %q", odd)
	}
}

func TestSecretArgumentsAreNamedByTheirOptionOnly(t *testing.T) {
	const secret = "very-secret-value"
	for _, row := range []struct {
		argv []string
		want string
	}{
		{[]string{"mtplx", "serve", "--api-key", secret}, "--api-key"},
		{[]string{"mtplx", "serve", "--api-key=" + secret}, "--api-key"},
		{[]string{"llama-server", "-hft", "hf_abcdefghijklmnop"}, "one without a name"},
		{[]string{"llama-server", "--hf-token", secret, "--port", "1"}, "--hf-token"},
		{[]string{"x", "--header", "Authorization: Bearer " + secret}, "one without a name"},
		{[]string{"x", "https://me:" + secret + "@host/"}, "one without a name"},
		{[]string{"x", "--url=https://me:" + secret + "@host/"}, "--url"},
		{[]string{"x", "sk-abcdefgh12345678"}, "one without a name"},
		{[]string{"x", "--пароль=sk-abcdefgh12345678"}, "one with an odd name"},
		{[]string{"llama-server", "--api-key-file", "/home/me/keys", "--max-tokens", "5", "--ctx-size", "4096", "-m",
			"модель с пробелом.gguf"}, ""},
		{[]string{"mtplx", "serve", "--model", "org/model-7b", "--max-tokens=4096", "--require-api-key", "--port",
			"8000"}, ""},
		{nil, ""},
	} {
		got := strings.Join(secretArguments(row.argv), ", ")
		if got != row.want || strings.Contains(got, secret) {
			t.Errorf("%q: %q", row.argv, got)
		}
	}
}
