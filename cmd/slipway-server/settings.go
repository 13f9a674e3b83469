package main

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/engine/api"
	"slipway/engine/host"
	"slipway/profiles"
	"slipway/termtext"
	"slipway/wire"
)

// settings are serve's flags, checked. Whatever cannot be honoured has been refused.
type settings struct {
	model      host.Settings
	addr       netip.AddrPort
	monitor    int    // port of the monitor page on 127.0.0.1; -1: none
	launchFile string // what the installer says of this launch; empty: none
	launchID   string

	key          *api.Key // nil: none
	originKey    *api.Key // nil: pages of allowed origins send key
	allowHosts   []string
	allowOrigins []string
}

// Defaults. A window of 8,192 keeps two sequences of a small model under 150 MB on the CPU; set-up sizes it to the
// machine.
const (
	defaultWindow   = 8192
	defaultParallel = 2
	defaultQueue    = 16
	mostParallel    = 16
	mostQueue       = 1024
	mostIdleMinutes = 7 * 24 * 60
	mostCacheBytes  = math.MaxInt64 / 4 // keeps sums of byte counts in range
	// half of it holds three points of a model of 0.8B, or a thousand of Pocket; set-up sizes it
	defaultCache = 512 << 20
	defaultDisk  = 8 << 30
	defaultDaily = 64 << 30 // two hundred turns of the 27B, 300 MiB each
	bodyBytes    = 32 << 20 // a prompt of 262,144 tokens is about 1 MB of English, at worst 8 MB once escaped
)

var (
	modelName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)
	launchName  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	revisionHex = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

func serveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Usage: "folder of the checkpoint"},
		&cli.StringFlag{Name: "device", Value: "auto", Usage: "auto, cpu or metal; auto is metal on a Mac of Apple " +
			"silicon that passes the self-test, else cpu"},
		&cli.StringFlag{Name: "kv", DefaultText: "f16 on metal, f32 on cpu", Usage: "format of keys and values: q8 " +
			"takes about half of the memory of f16, on metal, and is less exact"},
		&cli.StringFlag{Name: "operands", Value: "auto", Usage: "what prompts are multiplied in on metal: f16, bf16 " +
			"(less exact, for activations beyond 65504), or auto: f16 where a trial at the start fits into it"},
		&cli.StringFlag{Name: "draft", Value: string(profiles.NoDraft), Usage: "what proposes tokens that the model " +
			"then verifies: " + profiles.DraftHelp() + "; it changes the speed of replies, never what they may be"},
		&cli.IntFlag{Name: "draft-tokens", DefaultText: profiles.UsualDraftTokens(),
			Usage: "tokens that the draft proposes at a time"},
		&cli.StringFlag{Name: "draft-dir", DefaultText: "mtp: with the model; dflash2: beside it, or its folder " +
			"dflash2",
			Usage: "folder of the draft, with mtp.safetensors for mtp"},
		&cli.IntFlag{Name: "draft-bits", DefaultText: "4",
			Usage: "bits of the dflash2 draft's matrices: 4, into which " +
				"wider ones are converted while they are loaded, or 16, as they are in the file"},
		&cli.StringFlag{Name: "host", Value: "127.0.0.1", Usage: "address to listen on; beyond loopback needs " +
			"--api-key-file"},
		&cli.IntFlag{Name: "port", Value: 8008, Usage: "port; 0 takes a free one, which is printed"},
		&cli.IntFlag{Name: "monitor-port", Value: -1, DefaultText: "no page", Usage: "port of the monitor page, on " +
			"127.0.0.1 whatever --host says; 0 takes a free one, which is printed"},
		&cli.StringFlag{Name: "launch-file", Usage: "file with what the installer decided, shown by the monitor"},
		&cli.IntFlag{Name: "window", Value: defaultWindow, Usage: "most tokens of prompt and reply together"},
		&cli.IntFlag{Name: "parallel", Value: defaultParallel, Usage: "requests worked on at once"},
		&cli.IntFlag{Name: "queue", Value: defaultQueue, Usage: "requests that may wait behind them"},
		&cli.StringFlag{Name: "api-key-file", Usage: "file with the key that clients must send; readable by its " +
			"owner alone"},
		&cli.StringSliceFlag{Name: "allow-host", Usage: "name that clients may use in the Host header, such " +
			"as mac.local"},
		&cli.StringSliceFlag{Name: "allow-origin", Usage: "origin whose pages may ask, such as " +
			"http://localhost:3000, or app://, vscode-webview:// or tauri:// for all programs of that kind; it needs " +
			"--origin-key-file or --api-key-file"},
		&cli.StringFlag{Name: "origin-key-file", Usage: "file with the key that pages of allowed origins must " +
			"send, while others need none; readable by its owner alone"},
		&cli.StringFlag{Name: "launch-id", Usage: "name of this launch, shown by /health"},
		&cli.StringFlag{Name: "model-id", Usage: "name of the model in the API; left out: the folder's"},
		&cli.Int64Flag{Name: "cache-memory", Value: defaultCache, Usage: "bytes for restore points, so that " +
			"conversations go on without starting over; 0 keeps nothing"},
		&cli.StringFlag{Name: "cache-disk", Usage: "folder for restore points that outlive the server; they hold " +
			"what you and the model wrote"},
		&cli.Int64Flag{Name: "cache-disk-bytes", Value: defaultDisk, Usage: "most bytes in that folder"},
		&cli.Int64Flag{Name: "cache-disk-daily-bytes", Value: defaultDaily, Usage: "most bytes written there in a " +
			"day; 0 is no bound"},
		&cli.BoolFlag{Name: "no-cache-disk", Usage: "write no restore points to disk, whatever else is given"},
		&cli.IntFlag{Name: "idle-unload", Usage: "minutes without a request after which the weights' memory is " +
			"given back; 0 never; what is on disk is kept"},
		&cli.StringFlag{Name: "normalize-file", Usage: "file of rules that make changing text in system messages " +
			"stable: [{\"pattern\": \"...\", \"replacement\": \"...\"}]"},
		&cli.StringFlag{Name: "profile-name", Usage: "name of the profile that these settings were made of, shown " +
			"by /slipway/requests"},
		&cli.StringFlag{Name: "revision", Usage: "40 hex digits of the weights' revision, shown by /v1/models"},
	}
}

// readSettings checks the flags, each with the sentence that says what would work.
func readSettings(c *cli.Context) (settings, error) {
	s := settings{launchID: c.String("launch-id")}
	m := &s.model
	*m = host.Settings{
		Version: version, Revision: c.String("revision"), Profile: c.String("profile-name"),
		WindowDefault: !c.IsSet("window"),
		Device:        c.String("device"), KV: c.String("kv"), Operands: c.String("operands"), Draft: c.String("draft"),
		DraftTokens: c.Int("draft-tokens"), DraftDir: c.String("draft-dir"), DraftBits: c.Int("draft-bits"),
		Accelerator: accelerator, Memory: machineMemory,
	}
	if c.IsSet("draft-tokens") && m.DraftTokens == 0 {
		return s, usage("--draft-tokens 0: it must be in [1, %d]; --draft none drafts nothing",
			profiles.MostDraftTokens)
	}
	if c.IsSet("draft-bits") && m.DraftBits == 0 {
		return s, usage("--draft-bits 0: there are 4 and 16")
	}
	var err error
	if m.ModelDir, m.ModelID, err = modelOf(c.String("model"), c.String("model-id")); err != nil {
		return s, err
	}
	if err := m.Check(); err != nil {
		return s, err
	}
	for _, n := range []struct {
		flag      string
		to        *int
		low, high int
	}{{"window", &m.WindowTokens, host.LeastWindowTokens, 1 << 24}, {"parallel", &m.Parallel, 1, mostParallel},
		{"queue", &m.Queue, 0, mostQueue}} {
		if *n.to = c.Int(n.flag); *n.to < n.low || *n.to > n.high {
			return s, usage("--%s %d: it must be in [%d, %d]", n.flag, *n.to, n.low, n.high)
		}
	}
	if err := readCache(c, m); err != nil {
		return s, err
	}
	if file := c.String("normalize-file"); file != "" || c.IsSet("normalize-file") {
		raw, err := os.ReadFile(file)
		if err != nil {
			return s, usage("--normalize-file %s cannot be read: %v", file, cause(err))
		}
		if m.Normalize, err = host.ReadRules(raw); err != nil {
			return s, usage("--normalize-file %s: %v", file, err)
		}
	}
	if err := readCallers(c, &s); err != nil {
		return s, err
	}
	if s.addr, err = addressOf(c.String("host"), c.Int("port"), s.key != nil); err != nil {
		return s, err
	}
	m.Address = s.addr.Addr()
	if s.monitor = c.Int("monitor-port"); c.IsSet("monitor-port") && (s.monitor < 0 || s.monitor > 65535) {
		return s, usage("--monitor-port %d: it must be in [0, 65535]", s.monitor)
	}
	if s.monitor > 0 && s.monitor == int(s.addr.Port()) {
		return s, usage("--monitor-port %d is the API's port; give another", s.monitor)
	}
	s.launchFile = c.String("launch-file")
	if s.launchID != "" && !launchName.MatchString(s.launchID) {
		return s, usage("--launch-id: it must be 1 to 64 letters, digits, dots, dashes or underscores")
	}
	if m.Profile != "" && !launchName.MatchString(m.Profile) {
		return s, usage("--profile-name: it must be 1 to 64 letters, digits, dots, dashes or underscores")
	}
	if m.Revision != "" && !revisionHex.MatchString(m.Revision) {
		return s, usage("--revision %q: it must be 40 lower-case hex digits", m.Revision)
	}
	return s, nil
}

// readCallers reads the flags that say who may ask.
func readCallers(c *cli.Context, s *settings) error {
	for flag, key := range map[string]**api.Key{"api-key-file": &s.key, "origin-key-file": &s.originKey} {
		if !c.IsSet(flag) {
			continue
		}
		var err error
		if *key, err = readKey("--"+flag, c.String(flag)); err != nil {
			return err
		}
	}
	for _, text := range c.StringSlice("allow-host") {
		host, err := wire.ReadHost(text)
		if err != nil {
			return usage("--allow-host %v", err)
		}
		s.allowHosts = append(s.allowHosts, host)
	}
	for _, text := range c.StringSlice("allow-origin") {
		origin, err := wire.ReadOrigin(text)
		if err != nil {
			return usage("--allow-origin %v", err)
		}
		s.allowOrigins = append(s.allowOrigins, origin)
	}
	switch {
	case s.allowOrigins != nil && s.key == nil && s.originKey == nil:
		return usage("--allow-origin lets pages ask, which needs a key: give --origin-key-file")
	case s.originKey != nil && s.allowOrigins == nil:
		return usage("--origin-key-file is for the pages of --allow-origin, which is missing")
	}
	return nil
}

// readCache reads the flags of the cache.
func readCache(c *cli.Context, s *host.Settings) error {
	for _, n := range []struct {
		flag string
		to   *int64
	}{{"cache-memory", &s.CacheMemoryBytes}, {"cache-disk-bytes", &s.CacheDiskBytes},
		{"cache-disk-daily-bytes", &s.CacheDiskDailyBytes}} {
		if *n.to = c.Int64(n.flag); *n.to < 0 || *n.to > mostCacheBytes {
			return usage("--%s %d: it must be a number of bytes from 0 on", n.flag, *n.to)
		}
	}
	minutes := c.Int("idle-unload")
	if minutes < 0 || minutes > mostIdleMinutes {
		return usage("--idle-unload %d: it must be a number of minutes from 0 to %d", minutes, mostIdleMinutes)
	}
	s.IdleUnload = time.Duration(minutes) * time.Minute
	if c.Bool("no-cache-disk") {
		return nil
	}
	if s.CacheDisk = c.String("cache-disk"); s.CacheDisk == "" {
		if c.IsSet("cache-disk") || c.IsSet("cache-disk-bytes") || c.IsSet("cache-disk-daily-bytes") {
			return usage("--cache-disk is missing: the folder that the bounds are for")
		}
		return nil
	}
	if s.CacheMemoryBytes == 0 {
		return usage("--cache-disk needs memory to restore into; give --cache-memory more than 0")
	}
	return nil
}

func modelOf(dir, id string) (string, string, error) {
	if dir == "" {
		return "", "", usage("--model is missing: the folder with config.json, tokenizer.json and the weights")
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return "", "", usage("--model %s: there is no such folder", dir)
	}
	if id == "" {
		whole, err := filepath.Abs(dir)
		if err != nil {
			return "", "", err
		}
		id = filepath.Base(whole)
	}
	if !modelName.MatchString(id) {
		return "", "", usage("the model's name %q cannot be used in the API; give another with --model-id", id)
	}
	return dir, id, nil
}

// addressOf allows loopback; with a key also this machine's private addresses, or all of them at once (the guard then
// answers on private ones only). Never a public address.
func addressOf(host string, port int, keyed bool) (netip.AddrPort, error) {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return netip.AddrPort{}, usage("--host %q: it must be an IP address, such as 127.0.0.1", host)
	}
	if port < 0 || port > 65535 {
		return netip.AddrPort{}, usage("--port %d: it must be in [0, 65535]", port)
	}
	switch {
	case addr.IsLoopback():
	case !addr.IsUnspecified() && !addr.IsPrivate() && !addr.IsLinkLocalUnicast():
		return netip.AddrPort{}, usage("--host %s is a public address; this server answers on loopback and private "+
			"networks only", host)
	case !keyed:
		return netip.AddrPort{}, usage("--host %s opens the server to the network, which needs a key: give "+
			"--api-key-file, or listen on 127.0.0.1", host)
	}
	return netip.AddrPortFrom(addr, uint16(port)), nil
}

// Bounds on a key. 16 characters of the shortest alphabet in use (hex) are 64 bits.
const (
	leastKey     = 16
	mostKeyBytes = 4096
)

// readKey reads a key file that only its owner can read. The key is never printed.
func readKey(flag, file string) (*api.Key, error) {
	info, err := os.Stat(file)
	switch {
	case os.IsNotExist(err):
		return nil, usage("%s %s: there is no such file", flag, file)
	case err != nil:
		return nil, usage("%s %s cannot be looked at: %v", flag, file, err)
	case !info.Mode().IsRegular():
		return nil, usage("%s %s is no regular file; write the key into one of mode 0600", flag, file)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, usage("%s %s has mode %04o, so others can read it; run: chmod 600 %s", flag, file, mode, file)
	}
	if info.Size() > mostKeyBytes {
		return nil, usage("%s %s has %d bytes; that is no key", flag, file, info.Size())
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, usage("%s %s cannot be read: %v", flag, file, err)
	}
	key := termtext.Secret(raw)
	if len(key) < leastKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, usage("%s %s must hold one line of at least %d visible ASCII characters", flag, file,
			leastKey)
	}
	return api.NewKey(key), nil
}

// urlOf is how a client on this machine reaches the address.
func urlOf(addr net.Addr) string {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return addr.String()
	}
	host := ap.Addr().Unmap()
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return fmt.Sprintf("http://%s", net.JoinHostPort(host.String(), strconv.Itoa(int(ap.Port()))))
}
