package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdpnet "github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a tab of a real Chromium that watches what the page does behind its back.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // of the console
	asked      []string // hosts
}

// browse opens a tab. Without Chromium the test is skipped with a sentence, or fails in CI.
func browse(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "/Applications/Google " +
		"Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		const sentence = "There is no Chromium here, so the monitor's page is not tested. scripts/need.sh installs " +
			"it on Debian."
		if os.Getenv("CI") != "" {
			t.Fatal(sentence)
		}
		fmt.Println(sentence)
		t.Skip(sentence)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(program),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("headless", true), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(time.Minute))
	tab, leave := chromedp.NewContext(allocator)
	b := &browser{t: t, ctx: tab}
	t.Cleanup(func() {
		chromedp.Cancel(tab) // waits until the browser has ended
		leave()
		stop()
	})
	if err := chromedp.Listen(tab, b.watch); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	late, cancel := context.WithTimeout(tab, 8*time.Minute) // of the tab, not of the browser
	t.Cleanup(cancel)
	b.ctx = late
	call(b, cdpnet.Enable, cdpnet.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	return b
}

// call sends a command of Chromium's protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) (R, error) {
		return cdp.Call(ctx, t, command, params)
	})
	if err != nil {
		b.t.Fatalf("the browser: %s: %v", command.Method, err)
	}
	return result
}

func (b *browser) watch(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeLog && e.Type != runtime.ConsoleAPICalledTypeDebug {
			for _, argument := range e.Args {
				b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Type, argument.Value,
					argument.Description))
			}
		}
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *cdpnet.EventRequestWillBeSent:
		if at, err := url.Parse(e.Request.URL); err == nil {
			b.asked = append(b.asked, at.Host)
		}
	}
}

// clean fails where the console complained or another host than the page's was asked.
func (b *browser) clean(page string) {
	b.t.Helper()
	own, err := url.Parse(page)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, complaint := range b.complaints {
		b.t.Errorf("the console: %s", complaint)
	}
	for _, host := range b.asked {
		if host != own.Host {
			b.t.Errorf("the page asks %s", host)
		}
	}
	if len(b.asked) == 0 {
		b.t.Error("no request was seen, so nothing was watched")
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
}

// evaluate runs a JavaScript expression in the page and gives its value.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("the browser: %v in %s", err, expression)
	}
	return value
}

// until waits for a JavaScript expression to hold.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	for range 1200 {
		if evaluate[bool](b, expression) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("never seen on the page: %s; it shows:\n%s", what, evaluate[string](b, "document.body.innerText"))
}

// looks sets the window and the colours.
func (b *browser) looks(width, height int64, scheme string) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height,
		DeviceScaleFactor: 1, Mobile: width < 500})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// picture keeps a screenshot of the whole page where SLIPWAY_SCREENSHOTS names a folder, for people to look at.
func (b *browser) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("SLIPWAY_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
