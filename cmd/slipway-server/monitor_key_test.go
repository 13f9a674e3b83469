package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person without the key, with a wrong one and with the right one.
func TestMonitorShowsNothingWithoutItsKey(t *testing.T) {
	const key = "0123456789abcdef0123"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, at := monitored(t, "--api-key-file", file)
	b := browse(t)
	b.looks(375, 800, "dark")
	b.do(chromedp.Navigate(at + "/monitor"))
	const asks = `document.getElementById("key-dialog").open && document.activeElement.id === "key"`
	const wrong = `document.getElementById("key-wrong").innerText`
	b.until("the question for the key", asks)
	if said := evaluate[string](b, wrong); said != "" {
		t.Errorf("before a key was given it says %q", said)
	}
	if live := evaluate[bool](
		b, `document.body.dataset.live === "true" || document.body.innerText.includes("pocket")`); live {
		t.Error("something is shown without a key")
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("the question after Escape", asks)

	b.do(chromedp.KeyEvent("not-the-key" + kb.Enter))
	b.until("that the key was wrong", asks+` && `+wrong+` === "The server does not take that key."`)
	b.colours("wrong key, phone, dark", 5)
	b.picture("key-phone-dark")
	b.do(chromedp.KeyEvent(key + kb.Enter))
	b.until("the server", `document.body.dataset.live === "true" && document.getElementById("model").textContent === "pocket" && !document.getElementById("key-dialog").open`)
	b.until("memory", `document.body.innerText.includes("2.0 GiB")`)

	b.do(chromedp.Navigate(at + "/monitor"))
	b.until("the same tab, which keeps it",
		`document.body.dataset.live === "true" && document.getElementById("model").textContent === "pocket"`)
	if evaluate[bool](b, `document.cookie !== "" || localStorage.length > 0 || location.href.includes("`+key+`")`) {
		t.Error("the key is kept where it outlives the tab")
	}
	if strings.Contains(p.said(), key) || strings.Contains(p.said(), "not-the-key") {
		t.Errorf("a key is in the log:\n%s", p.said())
	}
}
