package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/installer/store"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

// A race is one load, fetched by us, by curl and openssl, by curl alone and by aria2c with its checksum, one after the
// other, five times over; reported is the median of each, and ours against theirs. The server is a process of its own.
type race struct {
	name    string
	files   int
	bytes   int64
	perConn int64
}

func BenchmarkAgainstCurlAndAria2(b *testing.B) {
	for _, r := range []race{{"one file of 2 GB", 1, 2 << 30, 0}, {"200 files of 1 MB", 200, 1 << 20, 0},
		{"2 GB at 20 MB/s a connection", 1, 2 << 30, 20 << 20}} {
		b.Run(r.name, func(b *testing.B) { r.run(b) })
	}
}

// tmpfs is where the files go: the disk is not what is measured.
func tmpfs(b *testing.B) string {
	dir, err := os.MkdirTemp("/dev/shm", "slipway-bench")
	if err != nil {
		dir = b.TempDir()
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (r race) run(b *testing.B) {
	dir := tmpfs(b)
	source := filepath.Join(dir, "source")
	if err := os.MkdirAll(source, 0o755); err != nil {
		b.Fatal(err)
	}
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: "org/model", Revision: someRevision,
		Source: "benchmark"}
	for i := range r.files {
		name := fmt.Sprintf("part-%03d.bin", i)
		content := testhub.Pattern(uint64(i), r.bytes)
		f, err := os.Create(filepath.Join(source, name))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyBuffer(f, io.NewSectionReader(content, 0, r.bytes), make([]byte, 1<<20)); err != nil {
			b.Fatal(err)
		}
		f.Close()
		f, _ = os.Open(filepath.Join(source, name))
		found, err := store.HashOf(context.Background(), f, nil)
		f.Close()
		if err != nil {
			b.Fatal(err)
		}
		lock.Files = append(lock.Files, manifests.File{Path: name, Size: r.bytes, SHA256: found,
			Proof: manifests.Proven})
	}
	url, stop := fileServer(b, source, r.perConn)
	defer stop()
	contenders := map[string]func(string) error{
		"slipway":      func(to string) error { return r.ours(to, url, lock) },
		"curl+openssl": func(to string) error { return r.curl(to, url, lock, true) },
		"curl":         func(to string) error { return r.curl(to, url, lock, false) },
		"aria2c -x8":   func(to string) error { return r.aria(to, url, lock) },
	}
	for name, tool := range map[string]string{"curl": "curl", "curl+openssl": "openssl", "aria2c -x8": "aria2c"} {
		if _, err := exec.LookPath(tool); err != nil {
			b.Logf("%s is not installed: no figure for %s", tool, name)
			delete(contenders, name)
		}
	}
	rounds := 5
	if r.perConn > 0 {
		rounds = 1
		delete(contenders, "curl")
		delete(contenders, "curl+openssl")
	}
	times := map[string][]float64{}
	for range rounds {
		for name, fetch := range contenders {
			to := filepath.Join(dir, "to")
			if err := os.MkdirAll(to, 0o755); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			if err := fetch(to); err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			times[name] = append(times[name], time.Since(began).Seconds())
			os.RemoveAll(to)
		}
	}
	median := func(name string) float64 {
		list := times[name]
		if len(list) == 0 {
			return 0
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	total := float64(r.bytes) * float64(r.files) / 1e6
	for name := range contenders {
		b.ReportMetric(total/median(name), strings.ReplaceAll(name, " ", "_")+"_MB/s")
		if name != "slipway" {
			b.ReportMetric(median(name)/median("slipway"), "x_"+strings.ReplaceAll(name, " ", "_"))
		}
	}
	if r.perConn > 0 {
		b.ReportMetric(total*1e6/median("slipway")/float64(8*r.perConn), "of_eight_connections")
	}
	b.ReportMetric(peakMegabytes(b), "peak_MB")
	b.ReportMetric(0, "ns/op")
}

func (r race) ours(to, url string, lock manifests.Lock) error {
	home, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer home.Close()
	c, err := New(Config{Endpoint: url}) // a mirror: no hub headers
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Download(context.Background(), Request{Home: home, Lock: lock, SkipUpstream: true}, nil)
}

func (r race) curl(to, url string, lock manifests.Lock, hash bool) error {
	args := []string{"-sS", "--fail", "--remote-name-all"}
	var names []string
	for _, f := range lock.Files {
		args = append(args, resolveURL(url, lock.Repo, lock.Revision, f.Path))
		names = append(names, f.Path)
	}
	cmd := exec.Command("curl", args...)
	cmd.Dir = to
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if !hash {
		return nil
	}
	sum := exec.Command("openssl", append([]string{"dgst", "-sha256"}, names...)...)
	sum.Dir = to
	out, err := sum.Output()
	if err == nil && !strings.Contains(string(out), lock.Files[0].SHA256.Hex()) {
		err = fmt.Errorf("openssl found another hash")
	}
	return err
}

func (r race) aria(to, url string, lock manifests.Lock) error {
	var list strings.Builder
	for _, f := range lock.Files {
		fmt.Fprintf(&list, "%s\n  out=%s\n  checksum=sha-256=%s\n", resolveURL(url, lock.Repo, lock.Revision, f.Path),
			f.Path,
			f.SHA256.Hex())
	}
	cmd := exec.Command("aria2c", "-q", "-x8", "-s8", "-j8", "-k1M", "--file-allocation=none", "-d", to, "-i", "-")
	cmd.Stdin = strings.NewReader(list.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// fileServer serves a folder from a process of its own: this test binary, in another role.
func fileServer(b *testing.B, dir string, perConn int64) (url string, stop func()) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLIPWAY_TEST_SERVE="+dir, fmt.Sprintf("SLIPWAY_TEST_RATE=%d", perConn))
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(string(line[:n])), func() { in.Close(); cmd.Wait() }
}

// peakMegabytes is the most memory this process ever had, in MB; 0 where the system does not say.
func peakMegabytes(b *testing.B) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kb float64
			fmt.Sscan(rest, &kb)
			return kb / 1000
		}
	}
	return 0
}

// slowly limits each answer to a rate.
type slowly struct {
	http.ResponseWriter
	perSecond int64
	began     time.Time
	sent      int64
}

func (s *slowly) Write(p []byte) (int, error) {
	for at := 0; at < len(p); {
		chunk := p[at:min(len(p), at+64<<10)]
		n, err := s.ResponseWriter.Write(chunk)
		at += n
		if err != nil {
			return at, err
		}
		s.sent += int64(n)
		time.Sleep(time.Until(s.began.Add(
			time.Duration(float64(s.sent) / float64(s.perSecond) * float64(time.Second)))))
	}
	return len(p), nil
}

func BenchmarkDeepVerifyAgainstOpenssl(b *testing.B) {
	dir := tmpfs(b)
	home, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer home.Close()
	const files, size = 8, 256 << 20
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: "org/model", Revision: someRevision,
		Source: "benchmark"}
	for i := range files {
		content := testhub.Pattern(uint64(i), size)
		lock.Files = append(lock.Files, manifests.File{Path: fmt.Sprintf("%d.bin", i), Size: size,
			SHA256: manifests.Digest("sha256:" + testhub.SHA256(content)), Proof: manifests.Proven})
		if err := store.Install(context.Background(), home, lock, lock.Files[i].Path,
			io.NewSectionReader(content, 0, size)); err != nil {
			b.Fatal(err)
		}
	}
	model := filepath.Join(dir, store.ModelDir(lock.Repo, lock.Revision))
	var ours, theirs []float64
	for range 5 {
		began := time.Now()
		if report, err := store.Verify(context.Background(), home, lock, true); err != nil || !report.OK() {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(began).Seconds())
		began = time.Now()
		cmd := exec.Command("sh", "-c", fmt.Sprintf("printf '%%s\\n' *.bin | xargs -n1 -P%d openssl dgst -sha256",
			runtime.NumCPU()))
		cmd.Dir = model
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		theirs = append(theirs, time.Since(began).Seconds())
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	b.ReportMetric(files*size/1e6/ours[2], "slipway_MB/s")
	b.ReportMetric(files*size/1e6/theirs[2], "openssl_MB/s")
	b.ReportMetric(theirs[2]/ours[2], "x_openssl")
	b.ReportMetric(0, "ns/op")
}
