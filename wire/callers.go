package wire

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// appSchemes are the schemes of desktop programs. Each such program chooses its own origins, so that a whole scheme
// can be allowed by its name.
var appSchemes = []string{"app", "vscode-webview", "tauri"}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// ReadHost gives a name that a Host header may have, in lower case. The error says what would be accepted.
func ReadHost(text string) (string, error) {
	if !hostName.MatchString(text) {
		return "", fmt.Errorf("%q: it must be a host name without a port, such as host.docker.internal", text)
	}
	return strings.ToLower(text), nil
}

// ReadOrigin gives an origin as browsers send it (lower case, without the scheme's own port), or the whole scheme of a
// desktop program, such as "app://". The error says what would be accepted.
func ReadOrigin(text string) (string, error) {
	origin, err := readOrigin(strings.ToLower(text))
	if err != nil {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	return origin, nil
}

func readOrigin(text string) (string, error) {
	scheme, authority, found := strings.Cut(text, "://")
	app := found && slices.Contains(appSchemes, scheme)
	switch {
	case text == "null":
		return "", errors.New("every sandboxed page and every file sends null, so that it names nobody")
	case strings.ContainsAny(text, "*?"):
		return "", errors.New("there are no patterns; give each origin whole, such as http://localhost:3000")
	case !app && (!found || scheme != "http" && scheme != "https"):
		return "", errors.New("an origin begins with http:// or https://; of desktop programs there are app://, " +
			"vscode-webview:// and tauri://")
	case app && authority == "":
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme+"://"+u.Host != text {
		return "", errors.New("an origin is scheme, host and port alone, such as http://localhost:3000, without " +
			"a path")
	}
	host := u.Hostname()
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.String()
	} else if !hostName.MatchString(host) {
		return "", errors.New("the host must be an address or a name of letters, digits, dots and dashes")
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port) {
		return "", errors.New("the port must be a number from 1 to 65535")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && !(scheme == "http" && port == "80" || scheme == "https" && port == "443") {
		host += ":" + port
	}
	return scheme + "://" + host, nil
}

// OriginIn reports whether an Origin header is one of the allowed, which are as ReadOrigin gives them.
func OriginIn(allowed []string, origin string) bool {
	origin = strings.ToLower(origin)
	scheme, rest, found := strings.Cut(origin, "://")
	return found && !strings.ContainsAny(rest, "/ ,") &&
		(slices.Contains(allowed, origin) ||
			slices.Contains(appSchemes, scheme) && slices.Contains(allowed, scheme+"://"))
}
