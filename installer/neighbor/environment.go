package neighbor

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"slipway/installer/neighbor/record"
)

// kept are the variables whose values go into a record (shared facts on neighbours, the restore record): where programs
// and models are found. Everything else keeps its name only.
var (
	kept = []string{"PATH", "HOME", "LANG", "VIRTUAL_ENV",
		"SLIPWAY_SERVER_LOG"} // the last: where our server writes its log
	keptPrefix = []string{"HF_", "MTPLX_", "OLLAMA_", "OMLX_"}
)

// ofTheTerminal are variables that describe a terminal, a login or a person's tools. A model server does the same
// without them, so that their absence is shown and is no loss.
var (
	ofTheTerminal = []string{
		"_", "PWD", "OLDPWD", "SHLVL", "SHELL", "USER", "LOGNAME", "USERNAME", "MAIL", "HOST", "HOSTNAME", "HOSTTYPE",
		"OSTYPE", "MACHTYPE", "VENDOR",
		"TERM", "COLORTERM", "COLORFGBG", "COLUMNS", "LINES", "CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR", "FORCE_COLOR",
		"LS_COLORS", "LSCOLORS", "LSCOLOR",
		"EDITOR", "VISUAL", "PAGER", "LESS", "MORE", "MANPATH", "MANPAGER", "INFOPATH", "BROWSER", "PS1", "PROMPT",
		"PROMPT_COMMAND", "ZSH", "ZDOTDIR",
		"HISTFILE", "HISTSIZE", "HISTCONTROL", "SAVEHIST", "TMPDIR", "TZ", "LANGUAGE",
		"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "WINDOWID", "TMUX", "TMUX_PANE", "STY", "SSH_AUTH_SOCK",
		"SSH_AGENT_PID", "SSH_CLIENT", "SSH_CONNECTION",
		"SSH_TTY", "SSH_ASKPASS", "GPG_TTY", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
		"INVOCATION_ID", "JOURNAL_STREAM",
		"SYSTEMD_EXEC_PID", "TOKENIZERS_PARALLELISM", "VIRTUAL_ENV_PROMPT", "CONDA_PROMPT_MODIFIER", "LaunchInstanceID",
		"SECURITYSESSIONID", "COMMAND_MODE",
		"GOPATH", "GOROOT", "GOBIN", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "DOTNET_ROOT", "BUN_INSTALL",
		"PNPM_HOME", "NVM_DIR", "NVM_BIN", "NVM_INC", "NVM_CD_FLAGS",
		"PYENV_ROOT", "PYENV_SHELL", "RBENV_SHELL", "MISE_SHELL", "SDKMAN_DIR",
	}
	ofTheTerminalPrefix = []string{"LC_", "TERM_", "ITERM_", "KITTY_", "WEZTERM_", "GHOSTTY_", "ALACRITTY_", "VTE_",
		"KONSOLE_", "VSCODE_", "LESS_", "XDG_SESSION_",
		"XDG_SEAT", "XDG_VTNR", "XDG_CURRENT_", "__CF", "XPC_", "Apple_", "HOMEBREW_", "STARSHIP_", "P9K_",
		"POWERLEVEL9K_", "FZF_", "BASH_", "ZSH_", "MAMBA_ROOT_"}
)

func listed(name string, names, prefixes []string) bool {
	return slices.Contains(names, name) ||
		slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// splitEnvironment keeps allow-listed values and only the names of all others. A secret's name wins over every list,
// and so does a value that holds one.
func splitEnvironment(env []string) (values map[string]string, names []string) {
	values = map[string]string{}
	for _, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		if listed(name, kept, keptPrefix) && !record.Secret(name) && !holdsSecret(value) {
			values[name] = value
		} else {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return values, slices.Compact(names)
}

// lost are those names without which a server may not be the same; the others are of the terminal.
func withoutValue(names []string) (missed, harmless []string) {
	for _, name := range names {
		if listed(name, ofTheTerminal, ofTheTerminalPrefix) {
			harmless = append(harmless, variable(name))
		} else {
			missed = append(missed, variable(name))
		}
	}
	return missed, harmless
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]{1,60}$`)

// variable is a name fit to print: a name is foreign text too.
func variable(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return quoted(name)
}

// The shapes of secrets: keys of known makers, headers, and options or settings that are followed by one.
var (
	secretShapes = regexp.MustCompile(
		`(?:^|[^A-Za-z0-9])(?:hf_[A-Za-z0-9]{10,}|sk-[A-Za-z0-9_-]{8,}|gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{12,}|xox[a-z]-[\w-]{8,}|AKIA[A-Z0-9]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]+)` +
			`|(?i:authorization\s*[:=])|(?i:\b(?:bearer|basic)\s+[A-Za-z0-9+/_.=~-]{6,})` +
			`|-----BEGIN [A-Z ]*PRIVATE KEY`)
	secretSetting = regexp.MustCompile(
		`(?i)(?:^|[\s?&;,"'])(--?)?([a-z0-9_-]*(?:api[-_]?key|access[-_]?key|token|secret|passw(?:or)?d|passphrase|credentials?|signature|cookie|bearer)|x-amz-[a-z-]+)(?:[=:]|\s+)\S`)
	secretOption = regexp.MustCompile(
		`(?i)^--?[a-z0-9_-]*(?:api[-_]?key|access[-_]?key|token|secret|passw(?:or)?d|passphrase|credentials?|cookie|bearer|auth)$`)
)

// holdsSecret reports whether text that would be written down has a secret in it: a password in a URL, a key, a header,
// an option that is followed by one. In doubt it says yes: a false alarm only makes a value be listed as lost.
func holdsSecret(text string) bool {
	if secretShapes.MatchString(text) || secretSetting.MatchString(text) {
		return true
	}
	if !strings.Contains(text, "://") {
		return false
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' || r == ';' }) {
		if u, err := url.Parse(word); err != nil || u.User != nil {
			return true
		}
	}
	return false
}

// secretArguments names what in a command line looks like a secret, by its option and never by its value.
func secretArguments(argv []string) []string {
	var found []string
	for i, arg := range argv {
		if i == 0 {
			continue
		}
		option, _, joined := strings.Cut(arg, "=")
		switch {
		case joined && strings.HasPrefix(arg, "-") && (secretOption.MatchString(option) || holdsSecret(arg)):
			found = append(found, argument(option))
		case secretOption.MatchString(argv[i-1]) && i > 1 && !strings.HasPrefix(arg, "-"):
			found = append(found, argument(argv[i-1]))
		case holdsSecret(arg):
			found = append(found, "one without a name")
		}
	}
	return slices.Compact(found)
}

var plainOption = regexp.MustCompile(`^--?[A-Za-z0-9_-]{1,60}$`)

func argument(option string) string {
	if plainOption.MatchString(option) {
		return option
	}
	return "one with an odd name"
}
