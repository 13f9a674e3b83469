package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"slipway/installer/store"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

// kit is a hub, a client of it whose waits take no time, and an empty home.
type kit struct {
	t      testing.TB
	hub    *testhub.Server
	repo   *testhub.Repo
	config Config
	home   *os.Root
	mu     sync.Mutex
	events []Event
	slept  []time.Duration
}

// sampleFiles: three files of several segments, small ones, an empty one, nested folders, spaces and non-ASCII.
func sampleFiles() []testhub.File {
	return []testhub.File{
		{Path: "model-00001.safetensors", Content: testhub.Pattern(1, 3<<20+17), LFS: true},
		{Path: "model-00002.safetensors", Content: testhub.Pattern(2, 2<<20), LFS: true},
		{Path: "model-00003.safetensors", Content: testhub.Pattern(3, 1<<20+1), LFS: true},
		{Path: "config.json", Content: testhub.Bytes([]byte(`{"model_type":"test"}`))},
		{Path: "empty", Content: testhub.Bytes(nil)},
		{Path: "sub folder/deep/вес й.bin", Content: testhub.Pattern(4, 70_000), LFS: true},
		{Path: "copy of config.json", Content: testhub.Bytes([]byte(`{"model_type":"test"}`))},
	}
}

const testSegment = 256 << 10

func newKit(t testing.TB, files ...testhub.File) *kit {
	t.Helper()
	server, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if files == nil {
		files = sampleFiles()
	}
	repo, err := server.Add("org/model", files...)
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	k := &kit{t: t, hub: server, repo: repo, home: home}
	k.config = Config{Origin: server.URL, SegmentBytes: testSegment, Connections: 4,
		StallTimeout: 300 * time.Millisecond,
		Sleep: func(ctx context.Context, d time.Duration) error {
			k.mu.Lock()
			k.slept = append(k.slept, d)
			k.mu.Unlock()
			return sleep(ctx, min(d, 2*time.Millisecond))
		}}
	return k
}

func (k *kit) client() *Client {
	k.t.Helper()
	c, err := New(k.config)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(c.Close)
	return c
}

func (k *kit) download(ctx context.Context) error {
	k.t.Helper()
	return k.downloadWith(ctx, k.client(), k.repo.Lock())
}

func (k *kit) downloadWith(ctx context.Context, c *Client, lock manifests.Lock) error {
	return c.Download(ctx, Request{Home: k.home, Lock: lock}, func(e Event) {
		k.mu.Lock()
		k.events = append(k.events, e)
		k.mu.Unlock()
	})
}

// whole fails unless every file has its final name with the right hash and nothing half-done is left.
func (k *kit) whole() {
	k.t.Helper()
	report, err := store.Verify(context.Background(), k.home, k.repo.Lock(), true)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, bad := range report.Bad() {
		k.t.Errorf("%s is %s", bad.Path, bad.State)
	}
	if len(report.Extra) > 0 {
		k.t.Errorf("extra files: %q", report.Extra)
	}
}

// nothingWrong fails if a file has its final name with other bytes than the lock names.
func (k *kit) nothingWrong() {
	k.t.Helper()
	report, err := store.Verify(context.Background(), k.home, k.repo.Lock(), true)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, bad := range report.Bad() {
		if bad.State != store.Missing {
			k.t.Errorf("%s has its final name and is %s", bad.Path, bad.State)
		}
	}
}

func (k *kit) said(kind EventKind) (texts []string) {
	for _, e := range k.events {
		if e.Kind == kind {
			texts = append(texts, e.Why)
		}
	}
	return texts
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestDownloadThenAgainAsksNothing(t *testing.T) {
	k := newKit(t)
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
	k.hub.Forget()
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if log := k.hub.Log(); len(log) != 0 {
		t.Errorf("a second run asked the network %d times, first %+v", len(log), log[0])
	}
}

// Every fault of a file's way, alone and once: the download ends whole.
func TestDownloadSurvivesEachFaultOnce(t *testing.T) {
	faults := map[string]testhub.Fault{
		"connection closed in the middle":         {Place: testhub.CDN, Kind: testhub.Cut, After: 100_000},
		"connection closed before the first byte": {Place: testhub.CDN, Kind: testhub.Cut},
		"connection reset in the middle":          {Place: testhub.CDN, Kind: testhub.Reset, After: 100_000},
		"no byte for the stall time-out":          {Place: testhub.CDN, Kind: testhub.Stall, After: 100_000},
		"no answer at all":                        {Place: testhub.CDN, Kind: testhub.Stall},
		"200 for a range":                         {Place: testhub.CDN, Kind: testhub.Whole, Skip: 2},
		"206 for other bytes":                     {Place: testhub.CDN, Kind: testhub.WrongRange},
		"206 of another size":                     {Place: testhub.CDN, Kind: testhub.WrongTotal},
		"more bytes than asked for":               {Place: testhub.CDN, Kind: testhub.Longer},
		"fewer bytes, with a length to match":     {Place: testhub.CDN, Kind: testhub.Shorter},
		"compressed though nobody asked":          {Place: testhub.CDN, Kind: testhub.Gzip},
		"a web page with status 200":              {Place: testhub.CDN, Kind: testhub.HTML},
		"no Content-Length":                       {Place: testhub.CDN, Kind: testhub.NoLength},
		"no Content-Length and cut":               {Place: testhub.CDN, Kind: testhub.NoLengthCut},
		"another validator":                       {Place: testhub.CDN, Kind: testhub.NewETag, Skip: 3},
		"416":                                     {Place: testhub.CDN, Kind: testhub.Status, Status: 416},
		"500":                                     {Place: testhub.CDN, Kind: testhub.Status, Status: 500},
		"502":                                     {Place: testhub.CDN, Kind: testhub.Status, Status: 502},
		"503 with a page": {Place: testhub.CDN, Kind: testhub.Status, Status: 503,
			Text: "<html>busy</html>"},
		"504":                          {Place: testhub.Resolve, Kind: testhub.Status, Status: 504},
		"408":                          {Place: testhub.Resolve, Kind: testhub.Status, Status: 408},
		"403 of the CDN in the middle": {Place: testhub.CDN, Kind: testhub.Status, Status: 403, Skip: 4},
		"404 of the CDN":               {Place: testhub.CDN, Kind: testhub.Status, Status: 404, Skip: 1},
		"429 of the hub": {Place: testhub.Resolve, Kind: testhub.Status, Status: 429,
			Header: map[string]string{"RateLimit": `"resolvers";r=0;t=2`}},
		"429 of the CDN without any header": {Place: testhub.CDN, Kind: testhub.Status, Status: 429},
		"wrong bytes in the first file":     {Place: testhub.CDN, Kind: testhub.WrongBytes, After: 777},
		"tree fails":                        {Place: testhub.Tree, Kind: testhub.Status, Status: 503},
		"small file cut":                    {Place: testhub.Resolve, Path: "config.json", Kind: testhub.Cut, After: 5},
		"small file longer":                 {Place: testhub.Resolve, Path: "config.json", Kind: testhub.Longer},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.hub.Script(fault)
			if err := k.download(within(t, time.Minute)); err != nil {
				t.Fatalf("%v\nwaits: %q", err, k.said(Waiting))
			}
			k.whole()
			for _, seen := range k.hub.Log() {
				if seen.Place == testhub.CDN && seen.Authorization != "" {
					t.Error("the CDN saw an Authorization")
				}
			}
		})
	}
}

// The same faults without end: the download ends with an error, and nothing wrong has a final name.
func TestEndlessFaultEndsInAnError(t *testing.T) {
	rows := map[string]testhub.Fault{
		"closed before the first byte": {Place: testhub.CDN, Kind: testhub.Cut},
		"no answer":                    {Place: testhub.CDN, Kind: testhub.Stall},
		"206 for other bytes":          {Place: testhub.CDN, Kind: testhub.WrongRange},
		"web pages":                    {Place: testhub.CDN, Kind: testhub.HTML},
		"compressed":                   {Place: testhub.CDN, Kind: testhub.Gzip},
		"500":                          {Place: testhub.CDN, Kind: testhub.Status, Status: 500},
		"403 of the CDN":               {Place: testhub.CDN, Kind: testhub.Status, Status: 403},
		"404 of the hub": {Place: testhub.Resolve, Kind: testhub.Status, Status: 404,
			Header: map[string]string{"X-Error-Code": "EntryNotFound"}},
		"429":                      {Place: testhub.Resolve, Kind: testhub.Status, Status: 429},
		"416":                      {Place: testhub.CDN, Kind: testhub.Status, Status: 416},
		"wrong bytes":              {Place: testhub.CDN, Kind: testhub.WrongBytes, After: 10},
		"shorter":                  {Place: testhub.CDN, Kind: testhub.Shorter},
		"one stream cut each time": {Place: testhub.CDN, Kind: testhub.NoLengthCut},
	}
	for name, fault := range rows {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.config.StallTimeout = 50 * time.Millisecond
			fault.Times = -1
			k.hub.Script(fault)
			err := k.download(within(t, time.Minute))
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want an error that says why", err)
			}
			k.nothingWrong()
			k.hub.Calm()
			if err := k.download(within(t, time.Minute)); err != nil {
				t.Fatalf("after the fault has gone: %v", err)
			}
			k.whole()
		})
	}
}

func TestWrongBytesAreKeptAndNamed(t *testing.T) {
	k := newKit(t)
	k.hub.Script(testhub.Fault{Place: testhub.CDN, Kind: testhub.WrongBytes, After: 10, Times: -1})
	err := k.download(within(t, time.Minute))
	var wrong *WrongBytesError
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v", err)
	}
	want, _ := k.repo.Lock().File(wrong.Path)
	if wrong.Expected != want.SHA256 || wrong.Found == want.SHA256 || wrong.Found == "" {
		t.Errorf("the error does not name both hashes: %+v", wrong)
	}
	info, err := k.home.Stat(wrong.Kept)
	if err != nil || info.Size() != want.Size {
		t.Errorf("the wrong bytes are not kept: %v", err)
	}
	if report, err := k.home.ReadFile(wrong.Kept + ".json"); err != nil || len(report) == 0 {
		t.Errorf("no report beside them: %v", err)
	}
}

func TestMirrorWithWrongBytesIsReplacedByTheNext(t *testing.T) {
	k := newKit(t)
	bad := newKit(t)
	bad.hub.Script(testhub.Fault{Place: testhub.CDN, Kind: testhub.WrongBytes, After: 10, Times: -1})
	k.config.Endpoint, k.config.Mirrors = bad.hub.URL, []string{k.hub.URL}
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
}

func TestDeadMirrorIsReplacedByTheNext(t *testing.T) {
	k := newKit(t)
	k.config.Endpoint, k.config.Mirrors = "http://127.0.0.1:1", []string{k.hub.URL}
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
}

// A mirror that leaves out the hub's headers: the lock's size serves, never the redirect's Content-Length.
func TestMirrorWithoutTheHubsHeadersIsUsable(t *testing.T) {
	for name, fault := range map[string]testhub.Fault{
		"redirect with a length of its own": {Place: testhub.Resolve, Kind: testhub.BareResolve, Times: -1},
		"no Content-Length anywhere":        {Place: testhub.CDN, Kind: testhub.NoLength, After: -1, Times: -1},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.config.Origin, k.config.Endpoint = DefaultOrigin, k.hub.URL
			k.hub.Script(fault)
			if err := k.download(within(t, time.Minute)); err != nil {
				t.Fatal(err)
			}
			k.whole()
		})
	}
	t.Run("a page of the hotel's network", func(t *testing.T) {
		k := newKit(t)
		k.hub.Script(testhub.Fault{Place: testhub.Tree, Kind: testhub.HTML, Times: -1},
			testhub.Fault{Place: testhub.Resolve, Kind: testhub.HTML, Times: -1})
		var not *NotAHubError
		if err := k.download(within(t, time.Minute)); !errors.As(err, &not) {
			t.Fatalf("got %v", err)
		}
		k.nothingWrong()
	})
	t.Run("from the hub itself it is no hub", func(t *testing.T) {
		k := newKit(t)
		k.hub.Script(testhub.Fault{Place: testhub.Resolve, Kind: testhub.BareResolve, Times: -1})
		var not *NotAHubError
		if err := k.download(within(t, time.Minute)); !errors.As(err, &not) {
			t.Fatalf("got %v", err)
		}
		k.nothingWrong()
	})
}

func TestRateLimitIsWaitedOutAsTheHubAsks(t *testing.T) {
	k := newKit(t)
	k.hub.Script(testhub.Fault{Place: testhub.Resolve, Kind: testhub.Status, Status: 429, Times: 2,
		Header: map[string]string{"RateLimit": `"resolvers";r=0;t=87`, "Retry-After": "5"}})
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range k.slept {
		found = found || d == 88*time.Second
	}
	if !found {
		t.Errorf("slept %v, want 88 s in it (t+1, not Retry-After)", k.slept)
	}
	if len(k.said(Waiting)) == 0 {
		t.Error("the user was not told")
	}
}

func TestUpstreamThatDiffersFromTheLockIsRefused(t *testing.T) {
	k := newKit(t)
	lock := k.repo.Lock()
	for name, change := range map[string]func(*manifests.File){
		"size": func(f *manifests.File) { f.Size++ },
		"hash": func(f *manifests.File) { f.SHA256 = manifests.DigestOf([32]byte{1}) },
		"name": func(f *manifests.File) { f.Path = "model-00009.safetensors" },
	} {
		t.Run(name, func(t *testing.T) {
			changed := lock
			changed.Files = append([]manifests.File(nil), lock.Files...)
			for i := range changed.Files {
				if changed.Files[i].Path == "model-00003.safetensors" {
					change(&changed.Files[i])
				}
			}
			var differs *UpstreamDiffersError
			err := k.downloadWith(within(t, time.Minute), k.client(), changed)
			if !errors.As(err, &differs) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestFileTooLargeForPlainHTTPIsRefusedBeforeARequest(t *testing.T) {
	k := newKit(t)
	lock := k.repo.Lock()
	lock.Files[0].Size = 50_000_000_001
	var large *TooLargeError
	if err := k.downloadWith(within(t, time.Minute), k.client(), lock); !errors.As(err, &large) ||
		large.Bytes != 50_000_000_001 {
		t.Fatalf("got %v", err)
	}
	if n := len(k.hub.Log()); n != 0 {
		t.Errorf("%d requests were sent before the size was looked at", n)
	}
}

func TestManyFilesGoThroughFewConnections(t *testing.T) {
	var files []testhub.File
	for i := range 60 {
		files = append(files, testhub.File{Path: fmt.Sprintf("part-%03d.bin", i),
			Content: testhub.Pattern(uint64(i), int64(5000*i)), LFS: i%2 == 0})
	}
	k := newKit(t, files...)
	k.hub.PageSize = 7
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
}
