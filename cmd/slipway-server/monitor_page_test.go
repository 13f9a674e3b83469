package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// sameNumbers compares each line of the page with the API's.
func (b *browser) sameNumbers(p *process) {
	b.t.Helper()
	told := requestsOf(b.t, p)
	b.until("all lines", fmt.Sprintf(`document.querySelectorAll("#recent tbody tr").length === %d`, len(told)))
	for _, r := range told {
		cells := evaluate[[]string](
			b, fmt.Sprintf(`[...document.querySelector('#recent tr[data-key="%s"]').cells].map((c) => c.textContent)`,
				r.ID))
		sum := fmt.Sprintf("%s = %s cached + %s computed", grouped(r.PromptTokens), grouped(r.CachedTokens),
			grouped(r.ComputedTokens))
		if r.Prefill.Of > r.PromptTokens {
			sum += ", of " + grouped(r.Prefill.Of)
		}
		prefill := inWords(&r.PrefillMs)
		if r.PrefillTokensPerS != nil {
			prefill += ", " + rateInWords(r.PrefillTokensPerS)
		}
		want := []string{sum, prefill, inWords(r.FirstTokenMs), grouped(r.CompletionTokens) + " tokens",
			rateInWords(r.DecodeTokensPerS), "no draft", "exact"}
		for i, text := range want {
			if !strings.HasPrefix(cells[i+1], text) {
				b.t.Errorf("%s: the page shows %q, the API says %q", r.ID, cells[i+1], text)
			}
		}
		if r.PromptTokens != r.CachedTokens+r.ComputedTokens {
			b.t.Errorf("%s: the prompt is not cached + computed: %+v", r.ID, r)
		}
	}
}

func grouped(n int) string {
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

func inWords(ms *float64) string {
	switch {
	case ms == nil:
		return "—"
	case *ms < 1000:
		return fmt.Sprintf("%.0f ms", *ms)
	case *ms < 60_000:
		return fmt.Sprintf("%.1f s", *ms/1000)
	}
	s := int(*ms/1000 + 0.5)
	return fmt.Sprintf("%d min %d s", s/60, s%60)
}

func rateInWords(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return "—"
	case *perSecond < 100:
		return fmt.Sprintf("%.1f tok/s", *perSecond)
	}
	return grouped(int(*perSecond+0.5)) + " tok/s"
}

// colours computes the contrast of every visible text (WCAG 2.2, 1.4.3: 4.5, or 3 where it is large), of least texts or
// more.
func (b *browser) colours(when string, least int) {
	b.t.Helper()
	poor := evaluate[struct {
		Looked int      `json:"looked"`
		Poor   []string `json:"poor"`
	}](b, contrast)
	for _, text := range poor.Poor {
		b.t.Errorf("%s: %s", when, text)
	}
	if poor.Looked < least {
		b.t.Errorf("%s: only %d texts were looked at", when, poor.Looked)
	}
}

const contrast = `(() => {
	const rgba = (c) => { const n = c.match(/[\d.]+/g).map(Number); return n.length === 3 ? [...n, 1] : n; };
	const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = (c) => { const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = (e) => { const layers = []; for (; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor)); return layers.reverse().reduce((under, c) => over(c, under), [255, 255, 255, 1]); };
	const poor = []; let looked = 0;
	for (const e of document.querySelectorAll("body *")) {
		const text = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join(" ").trim();
		if (!text || e.closest("svg, script, noscript") || !e.checkVisibility({visibilityProperty: true}) || e.matches(":disabled")) continue;
		const s = getComputedStyle(e), under = ground(e), ink = over(rgba(s.color), under);
		const [a, b] = [light(ink), light(under)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
		const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && s.fontWeight >= 700;
		looked++;
		if (ratio < (large ? 3 : 4.5)) poor.push(e.tagName + " " + JSON.stringify(text.slice(0, 40)) + " has a contrast of " + ratio.toFixed(2));
	}
	return {looked, poor};
})()`

// labels asks Chromium's accessibility tree for everything that must have a name.
func (b *browser) labels() {
	b.t.Helper()
	needs := map[string]int{"button": 0, "checkbox": 0, "progressbar": 0, "image": 0, "link": 0, "heading": 0,
		"region": 0, "columnheader": 0, "DisclosureTriangle": 0}
	for _, node := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role := strings.Trim(string(node.Role.Value), `"`)
		if _, must := needs[role]; !must {
			continue
		}
		needs[role]++
		if node.Name == nil || strings.Trim(string(node.Name.Value), `" `) == "" {
			b.t.Errorf("a %s has no name", role)
		}
	}
	for _, role := range []string{"button", "image", "heading", "region", "columnheader"} {
		if needs[role] == 0 {
			b.t.Errorf("the accessibility tree holds no %s: %v", role, needs)
		}
	}
}

// keyboard goes through the page with the tab key alone.
func (b *browser) keyboard() {
	b.t.Helper()
	evaluate[bool](b, `document.activeElement.blur(); window.scrollTo(0, 0); true`)
	reached := map[string]bool{}
	for range 40 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := evaluate[string](b,
			`(document.activeElement.id || document.activeElement.className || document.activeElement.tagName)`)
		reached[at] = true
		if at != "BODY" && !evaluate[bool](
			b, `(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1; })()`) {
			b.t.Errorf("focus on %s is not to be seen", at)
		}
	}
	for _, wanted := range []string{"skip", "SUMMARY", "reload"} {
		if !reached[wanted] {
			b.t.Errorf("the tab key never comes to %s, only to %v", wanted, reached)
		}
	}
}
