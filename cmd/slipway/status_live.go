package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"slipway/installer/launch"
	"slipway/termtext"
	"slipway/units"
	"slipway/wire"
)

// The server's own view, in words. It shows the numbers of the monitor's page and computes none.

// recentShown is how many ended requests status prints.
const recentShown = 5

func printLive(w io.Writer, l *launch.Live, most int) {
	for _, line := range memoryLines(l) {
		fmt.Fprintln(w, line)
	}
	var active, ended []wire.WatchedRequest
	for _, r := range l.Requests {
		if r.Ended() {
			ended = append(ended, r)
		} else {
			active = append(active, r)
		}
	}
	if len(active) == 0 {
		fmt.Fprintln(w, "No request is under way.")
	}
	for _, r := range active {
		fmt.Fprintf(w, "  %s %s\n", shortID(r.ID), underWay(r))
	}
	if len(ended) > 0 {
		fmt.Fprintln(w, "Recent requests:")
	}
	for _, r := range ended[:min(most, len(ended))] {
		fmt.Fprintf(w, "  %s %s %s\n", r.Started.Local().Format("15:04:05"), shortID(r.ID), outcome(r))
	}
}

func memoryLines(l *launch.Live) []string {
	var lines []string
	if m := l.Memory; m != nil {
		kv := "KV"
		if l.Server.KVFormat != "" {
			kv += " in " + termtext.Line(l.Server.KVFormat)
		}
		line := fmt.Sprintf("Memory: weights %s, %s and states %s, restore points at most %s, work space %s",
			units.Binary(m.WeightsBytes), kv, units.Binary(m.ContextBytes),
			units.Binary(m.PointsBudgetBytes), units.Binary(m.WorkBytes))
		if l.Launch != nil && l.Launch.BudgetBytes > 0 {
			line += "; budget " + units.Binary(l.Launch.BudgetBytes)
		}
		if !m.Loaded {
			line += "; given back until the next request"
		}
		lines = append(lines, line+".")
	}
	if l.Launch != nil && l.Launch.Limit != "" {
		lines = append(lines, l.Launch.Limit)
	}
	if c := l.Cache; c != nil {
		line := "Restore points: " + tierWords(c.Memory, units.Binary) + " in memory"
		if c.Disk != nil {
			line += ", " + tierWords(*c.Disk, units.Short) + " on disk"
		}
		lines = append(lines, line+".")
	}
	if m := l.Machine; m != nil {
		var words []string
		if m.Pressure != "" {
			words = append(words, "memory pressure "+m.Pressure)
		}
		if m.AvailableBytes != nil && m.RAMBytes != nil {
			words = append(words, fmt.Sprintf("%s of %s available", units.Binary(*m.AvailableBytes),
				units.Binary(*m.RAMBytes)))
		}
		if m.SwapUsedBytes != nil {
			words = append(words, "swap used "+units.Binary(*m.SwapUsedBytes))
		}
		if m.OwnBytes != nil {
			words = append(words, "this server "+units.Binary(*m.OwnBytes))
		}
		if len(words) > 0 {
			lines = append(lines, "Machine: "+strings.Join(words, ", ")+".")
		}
	}
	return lines
}

func tierWords(t wire.WatchedTier, size func(int64) string) string {
	return fmt.Sprintf("%s (%s of %s)", units.Count(t.Points), size(t.Bytes), size(t.BudgetBytes))
}

// underWay is a request's phase and progress.
func underWay(r wire.WatchedRequest) string {
	switch r.Phase {
	case "tokenize":
		return "is cut into tokens"
	case "queue":
		return fmt.Sprintf("waits for its turn with %s tokens", units.Count(r.Prefill.OfTokens))
	case "prefill":
		line := fmt.Sprintf("prefill %s of %s tokens", units.Count(r.Prefill.DoneTokens),
			units.Count(r.Prefill.OfTokens))
		if r.PrefillTokensPerS != nil {
			line += fmt.Sprintf(", %s so far (provisional)", rateWords(r.PrefillTokensPerS))
		}
		if r.PrefillLeftMs != nil {
			line += fmt.Sprintf(", about %s left", durationWords(r.PrefillLeftMs))
		}
		return line + "; " + sumWords(r)
	}
	line := fmt.Sprintf("decode %s of at most %s tokens", units.Count(r.CompletionTokens), units.Count(r.MaxTokens))
	if r.DecodeTokensPerS != nil {
		line += fmt.Sprintf(", %s so far (provisional)", rateWords(r.DecodeTokensPerS))
	}
	return line + fmt.Sprintf(", first token after %s; %s", durationWords(r.FirstTokenMs), sumWords(r))
}

// outcome is an ended request's final numbers.
func outcome(r wire.WatchedRequest) string {
	sum := sumWords(r)
	if r.Prefill.OfTokens > r.PromptTokens {
		sum += ", of " + units.Count(r.Prefill.OfTokens)
	}
	words := []string{r.Phase + ": " + sum, "prefill " + durationWords(&r.PrefillMs)}
	if r.PrefillTokensPerS != nil {
		words[1] += ", " + rateWords(r.PrefillTokensPerS)
	}
	if r.FirstTokenMs != nil {
		words = append(words, "first token "+durationWords(r.FirstTokenMs))
	}
	reply := units.Count(r.CompletionTokens) + " tokens"
	if r.DecodeTokensPerS != nil {
		reply += ", " + rateWords(r.DecodeTokensPerS)
	}
	words = append(words, reply)
	if r.Draft != nil {
		draft := fmt.Sprintf("draft %s of %s accepted", units.Count(r.Draft.Accepted), units.Count(r.Draft.Drafted))
		if r.Draft.TokensPerPass > 0 {
			draft += fmt.Sprintf(", %.2f tokens a pass", r.Draft.TokensPerPass)
		}
		if r.Draft.Off != "" {
			draft += ", switched off"
		}
		words = append(words, draft)
	}
	if r.PrefillPolicy != "exact" {
		words = append(words, "prefill policy "+r.PrefillPolicy)
	}
	if c := r.Recomputed; c != nil && c.AgainTokens > 0 {
		again := fmt.Sprintf("%s of %s known computed again", units.Count(c.AgainTokens), units.Count(c.KnownTokens))
		if c.Because != "" {
			again += ": " + c.Because
		}
		words = append(words, again)
	}
	return strings.Join(words, "; ")
}

// sumWords is the sum that every line keeps.
func sumWords(r wire.WatchedRequest) string {
	return fmt.Sprintf("prompt %s = %s cached + %s computed", units.Count(r.PromptTokens), units.Count(r.CachedTokens),
		units.Count(r.ComputedTokens))
}

func shortID(id string) string {
	id = strings.TrimPrefix(termtext.Line(id), "req_")
	return id[:min(8, len(id))]
}

func durationWords(ms *float64) string {
	if ms == nil {
		return "not yet"
	}
	switch {
	case *ms < 1000:
		return fmt.Sprintf("%.0f ms", *ms)
	case *ms < 60_000:
		return fmt.Sprintf("%.1f s", *ms/1000)
	}
	return (time.Duration(*ms/1000+0.5) * time.Second).String()
}

func rateWords(perSecond *float64) string {
	if *perSecond < 100 {
		return fmt.Sprintf("%.1f tok/s", *perSecond)
	}
	return units.Count(int(math.Round(*perSecond))) + " tok/s"
}
