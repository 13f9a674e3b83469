package hub

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/installer/store"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

// The test binary is also the program that is killed: with SLIPWAY_TEST_DOWNLOAD set it downloads and says what it
// hashes.
func TestMain(m *testing.M) {
	if os.Getenv("SLIPWAY_TEST_DOWNLOAD") != "" {
		if err := downloadInChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv("SLIPWAY_TEST_SERVE"); dir != "" {
		serveFolder(dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveFolder is the benchmark's server: plain files under the hub's addresses, until standard input closes.
func serveFolder(dir string) {
	var rate int64
	fmt.Sscan(os.Getenv("SLIPWAY_TEST_RATE"), &rate)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println("http://" + listener.Addr().String())
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rate > 0 {
			w = &slowly{ResponseWriter: w, perSecond: rate, began: time.Now()}
		}
		http.ServeFile(w, r, filepath.Join(dir, path.Base(r.URL.Path)))
	}))
	io.Copy(io.Discard, os.Stdin)
}

func downloadInChild() error {
	data, err := os.ReadFile(os.Getenv("SLIPWAY_TEST_LOCK"))
	if err != nil {
		return err
	}
	lock, err := manifests.ParseLock(data)
	if err != nil {
		return err
	}
	home, err := os.OpenRoot(os.Getenv("SLIPWAY_TEST_DOWNLOAD"))
	if err != nil {
		return err
	}
	config := ConfigFromEnv(os.Getenv)
	config.Origin, config.SegmentBytes, config.Connections = os.Getenv("SLIPWAY_TEST_ORIGIN"), testSegment, 4
	c, err := New(config)
	if err != nil {
		return err
	}
	return c.Download(context.Background(), Request{Home: home, Lock: lock}, func(e Event) {
		if e.Kind == Hashed {
			fmt.Fprintf(os.Stdout, "%d %d %s\n", e.From, e.Bytes, e.Path) // unbuffered: a killed run has said it
		}
		if os.Getenv("SLIPWAY_TEST_TALK") != "" {
			fmt.Fprintf(os.Stdout, "%+v\n", e)
		}
	})
}

func (k *kit) child(extra ...string) *exec.Cmd {
	k.t.Helper()
	data, err := k.repo.Lock().Marshal()
	if err != nil {
		k.t.Fatal(err)
	}
	lock := filepath.Join(k.t.TempDir(), "lock.json")
	if err := os.WriteFile(lock, data, 0o600); err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{"SLIPWAY_TEST_DOWNLOAD=" + k.home.Name(), "SLIPWAY_TEST_LOCK=" + lock,
		"SLIPWAY_TEST_ORIGIN=" + k.hub.URL,
		"HOME=" + k.t.TempDir(), "PATH=" + os.Getenv("PATH")}, extra...)
	return cmd
}

// hashedTwice is how many bytes of one file were hashed more than once, the worst file's.
func hashedTwice(outputs ...[]byte) int64 {
	spans := map[string][]byteRange{}
	for _, out := range outputs {
		lines := bufio.NewScanner(bytes.NewReader(out))
		for lines.Scan() {
			var r byteRange
			var n int64
			head, path, _ := strings.Cut(lines.Text(), " ")
			second, path, _ := strings.Cut(path, " ")
			if _, err := fmt.Sscan(head, &r.From); err != nil {
				continue
			}
			fmt.Sscan(second, &n)
			r.To = r.From + n
			spans[path] = append(spans[path], r)
		}
	}
	worst := int64(0)
	for _, list := range spans {
		var total int64
		var set rangeSet
		for _, r := range list {
			total += r.To - r.From
			set = set.add(r)
		}
		worst = max(worst, total-set.bytes())
	}
	return worst
}

// Killed at a random byte: the next run ends whole, fetches at most one segment a connection twice, and hashes at most
// one segment of a file twice, but for a file that looks as if another program had written into it.
func TestKilledAtRandomPoints(t *testing.T) {
	points := 20
	if os.Getenv("SLIPWAY_SOAK") != "" {
		points = 100
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 4))
	t.Logf("seed %d", seed)
	files := []testhub.File{
		{Path: "model-1.safetensors", Content: testhub.Pattern(1, 12*testSegment+17), LFS: true},
		{Path: "model-2.safetensors", Content: testhub.Pattern(2, 6*testSegment), LFS: true},
		{Path: "model-3.safetensors", Content: testhub.Pattern(3, 2*testSegment+1), LFS: true},
	}
	k := newKit(t, files...)
	total := k.repo.Lock().TotalBytes()
	late := 0
	for point := range points {
		dir := t.TempDir()
		home, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		k.home = home
		k.hub.Forget()
		at := random.Int64N(total)
		cmd := k.child()
		var first bytes.Buffer
		cmd.Stdout = &first
		killed := make(chan struct{})
		k.hub.OnServed(func(served int64) {
			if served >= at && cmd.Process != nil {
				cmd.Process.Signal(syscall.SIGKILL)
			}
		})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		close(killed)
		k.hub.OnServed(nil)
		k.nothingWrong()
		again := k.child()
		var second, talk bytes.Buffer
		again.Stdout, again.Stderr = &second, &talk
		if err := again.Run(); err != nil {
			t.Fatalf("point %d, killed after %d of %d bytes: %v: %s", point, at, total, err, talk.String())
		}
		k.whole()
		var sent int64
		for _, seen := range k.hub.Log() {
			if seen.Place == testhub.CDN {
				sent += seen.To - seen.From
			}
		}
		// What the server sent and the killed process never read is in socket buffers: at most the requests in flight,
		// a segment each, which is the bound itself.
		if twice := sent - total; twice > 4*testSegment {
			t.Errorf("point %d, killed after %d bytes: %d bytes fetched twice, at most %d may", point, at, twice,
				4*testSegment)
		}
		// Where this machine held up a write for long, the file looks as if another program had written into it, and is
		// read once more at its end.
		if twice := hashedTwice(first.Bytes(), second.Bytes()); twice > testSegment {
			if late++; late > 1+points/10 || hashedTwice(second.Bytes()) == 0 {
				t.Errorf("point %d, killed after %d bytes: %d bytes of a file hashed twice", point, at, twice)
			}
		}
		home.Close()
		os.RemoveAll(dir)
	}
}

func TestCancelledKeepsEveryByteThatArrived(t *testing.T) {
	k := newKit(t)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	k.hub.OnServed(func(served int64) {
		if served > 2<<20 {
			cancel()
		}
	})
	if err := k.download(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	k.hub.OnServed(nil)
	k.nothingWrong()
	var arrived int64
	for _, e := range k.events {
		if e.Kind == Arrived && strings.HasPrefix(e.Path, "model") {
			arrived += e.Bytes
		}
	}
	k.events = nil
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
	var more int64
	for _, e := range k.events {
		if e.Kind == Arrived && strings.HasPrefix(e.Path, "model") {
			more += e.Bytes
		}
	}
	var all int64
	for _, f := range k.repo.Lock().Files {
		if strings.HasPrefix(f.Path, "model") {
			all += f.Size
		}
	}
	if arrived+more != all {
		t.Errorf("%d bytes, then %d, of %d: bytes were thrown away or counted twice", arrived, more, all)
	}
}

// A damaged journal is never a failure, and with the one before it available costs little.
func TestDownloadWithADamagedJournalLosesLittle(t *testing.T) {
	damage := map[string]func(name string) error{
		"empty": func(name string) error { return os.WriteFile(name, nil, 0o644) },
		"half": func(name string) error {
			data, _ := os.ReadFile(name)
			return os.WriteFile(name, data[:len(data)/2], 0o644)
		},
		"not ours": func(name string) error { return os.WriteFile(name, []byte(`{"schema_version":1}`), 0o644) },
		"gone":     os.Remove,
		"lying hash": func(name string) error {
			data, _ := os.ReadFile(name)
			return os.WriteFile(name, bytes.Replace(data, []byte(`"hashed_bytes":`), []byte(`"hashed_bytes":9`), 1),
				0o644)
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			ctx, cancel := context.WithCancel(within(t, time.Minute))
			k.hub.OnServed(func(served int64) {
				if served > 4<<20 {
					cancel()
				}
			})
			k.download(ctx)
			k.hub.OnServed(nil)
			journals, _ := filepath.Glob(filepath.Join(k.home.Name(), "models/.partial/*.part.json"))
			if len(journals) == 0 {
				t.Fatal("no journal was written")
			}
			for _, j := range journals {
				if err := do(j); err != nil {
					t.Fatal(err)
				}
			}
			if err := k.download(within(t, time.Minute)); err != nil {
				t.Fatal(err)
			}
			k.whole()
		})
	}
	t.Run("the partial file itself is replaced", func(t *testing.T) {
		k := newKit(t)
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		k.hub.OnServed(func(served int64) {
			if served > 4<<20 {
				cancel()
			}
		})
		k.download(ctx)
		k.hub.OnServed(nil)
		parts, _ := filepath.Glob(filepath.Join(k.home.Name(), "models/.partial/*.part"))
		for _, part := range parts {
			info, err := os.Stat(part)
			if err != nil {
				t.Fatal(err)
			}
			os.WriteFile(part+".other", make([]byte, info.Size()), 0o644)
			os.Rename(part+".other", part)
		}
		if err := k.download(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		k.whole()
	})
}

func TestTwoProcessesOneHome(t *testing.T) {
	k := newKit(t)
	k.hub.BytesPerSecondPerStream = 2 << 20
	var talk [2]bytes.Buffer
	var commands [2]*exec.Cmd
	for i := range commands {
		commands[i] = k.child()
		commands[i].Stderr = &talk[i]
		if err := commands[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	failed := 0
	for i, cmd := range commands {
		if err := cmd.Wait(); err != nil {
			failed++
			if !strings.Contains(talk[i].String(), "another process (pid ") {
				t.Errorf("the second says %q", talk[i].String())
			}
		}
	}
	if failed > 1 {
		t.Error("both gave way")
	}
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
}

// Random faults in random places: never a wrong file, never success with bytes missing, always an end.
func TestRandomFaultsNeverLeaveAWrongFile(t *testing.T) {
	rounds := 25
	if os.Getenv("SLIPWAY_SOAK") != "" {
		rounds = 1000
	}
	kinds := []testhub.Kind{testhub.Cut, testhub.Reset, testhub.Stall, testhub.Whole, testhub.Gzip, testhub.HTML,
		testhub.WrongBytes, testhub.WrongRange,
		testhub.WrongTotal, testhub.Longer, testhub.Shorter, testhub.NoLength, testhub.NoLengthCut, testhub.NewETag,
		testhub.BareResolve, testhub.Status, testhub.Redirect}
	statuses := []int{400, 401, 403, 404, 408, 410, 416, 418, 429, 500, 502, 503, 504, 206, 204}
	seed := uint64(time.Now().UnixNano())
	for round := range rounds {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		k := newKit(t)
		k.config.StallTimeout = 40 * time.Millisecond
		var script []testhub.Fault
		for range 1 + random.IntN(8) {
			f := testhub.Fault{Place: []testhub.Place{testhub.CDN, testhub.CDN, testhub.CDN, testhub.Resolve,
				testhub.Tree}[random.IntN(5)],
				Kind: kinds[random.IntN(len(kinds))], Skip: random.IntN(12), Times: 1 + random.IntN(3),
				After: random.Int64N(400_000)}
			if random.IntN(6) == 0 {
				f.Times = -1
			}
			f.Status = statuses[random.IntN(len(statuses))]
			f.Text = k.hub.URL + "/nowhere"
			script = append(script, f)
		}
		k.hub.Script(script...)
		err := k.download(within(t, time.Minute))
		if errors.Is(err, context.DeadlineExceeded) {
			buffer := make([]byte, 1<<16)
			t.Fatalf("seed %d round %d: no end under %+v\n%s", seed, round, script,
				buffer[:runtime.Stack(buffer, true)])
		}
		if err == nil {
			k.whole()
		}
		k.nothingWrong()
		k.hub.Calm()
		if err := k.download(within(t, time.Minute)); err != nil {
			t.Fatalf("seed %d round %d: after %+v: %v", seed, round, script, err)
		}
		k.whole()
		if t.Failed() {
			t.Fatalf("seed %d round %d: %+v", seed, round, script)
		}
		k.hub.Close()
	}
}

// A file of more than 4 GiB whose middle is on disk already: positions beyond 32 bits. In the soak all is fetched.
func TestFileBeyond32Bits(t *testing.T) {
	const size = 1<<32 + 64<<20 + 3
	marks := map[int64]byte{0: 1, 1<<31 - 1: 2, 1 << 31: 3, 1<<32 - 1: 4, 1 << 32: 5, size - 1: 6}
	content := testhub.Sparse(size, marks)
	k := newKit(t, testhub.File{Path: "model.safetensors", Content: content, LFS: true})
	k.config.SegmentBytes, k.config.StallTimeout = 16<<20, 30*time.Second
	if free, err := store.FreeBytes(k.home); err == nil && free < size+size/8 && os.Getenv("SLIPWAY_SOAK") != "" {
		t.Skipf("only %d bytes are free where temporary files go; this needs %d", free, int64(size))
	}
	if os.Getenv("SLIPWAY_SOAK") == "" {
		seedPartial(t, k, size, []byteRange{{16 << 20, 1<<31 - 16<<20}, {1<<31 + 16<<20, 1<<32 - 16<<20},
			{1<<32 + 16<<20, size - 1<<20}})
	}
	if err := k.download(within(t, 10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	f, err := k.home.Open("models/org--model/" + string(k.repo.Revision) + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, want := range marks {
		var b [1]byte
		if _, err := f.ReadAt(b[:], at); err != nil || b[0] != want {
			t.Errorf("byte %d is %d, want %d (%v)", at, b[0], want, err)
		}
	}
}

// seedPartial makes a sparse partial file, and a journal that vouches for the given ranges, all zero bytes.
func seedPartial(t *testing.T, k *kit, size int64, done []byteRange) {
	t.Helper()
	f := k.repo.Lock().Files[slices.IndexFunc(k.repo.Lock().Files, func(f manifests.File) bool {
		return f.Size == size
	})]
	name := filepath.Join(k.home.Name(), "models/.partial", f.SHA256.Hex()+".part")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	part, err := store.OpenPartial(k.home, f)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	id, err := part.Identity()
	if err != nil {
		t.Fatal(err)
	}
	data := fmt.Sprintf(`{"schema_version":1,"sha256":%q,"bytes":%d,"inode":%d,"done":[`, f.SHA256, size, id.Inode)
	for i, r := range done {
		if i > 0 {
			data += ","
		}
		data += fmt.Sprintf(`{"From":%d,"To":%d}`, r.From, r.To)
	}
	if err := part.SaveJournal([]byte(data + `]}`)); err != nil {
		t.Fatal(err)
	}
}
