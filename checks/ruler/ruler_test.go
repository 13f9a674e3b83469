package ruler

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func random() *rand.Rand { return rand.New(rand.NewPCG(3, 4)) }

// What is asked for must be in the text, and be the only right answer.
func TestEveryTaskHasOneRightAnswer(t *testing.T) {
	t.Run("needles", func(t *testing.T) {
		for _, make := range []func(*rand.Rand, int, int, int) made{multikey1, multikey2, multikey3} {
			m := make(random(), 50, 1, 4096)
			key := regexp.MustCompile(`What is the special magic \w+ for (\S+) mentioned`).FindStringSubmatch(m.text)[1]
			lines := regexp.MustCompile(`One of the special magic \w+ for (\S+) is: (\S+)\.`).FindAllStringSubmatch(
				m.text, -1)
			found := 0
			for _, l := range lines {
				if l[1] == key {
					found++
					if l[2] != m.want[0] {
						t.Errorf("%s is %s, not %s", key, l[2], m.want[0])
					}
				}
			}
			if found != 1 || len(lines) < 4 {
				t.Errorf("%d of %d needles have the key", found, len(lines))
			}
		}
	})
	t.Run("variables", func(t *testing.T) {
		m := variableTracking(random(), 40, 1, 4096)
		question := m.text[strings.LastIndex(m.text, "Memorize"):] // after the solved example
		value := regexp.MustCompile(`assigned the value (\d+)`).FindStringSubmatch(question)[1]
		var got []string
		known := map[string]string{}
		for _, l := range regexp.MustCompile(`(?m)^VAR (\w+) = (?:VAR )?(\w+)$`).FindAllStringSubmatch(question, -1) {
			known[l[1]] = l[2]
			if v, ok := known[l[2]]; ok {
				known[l[1]] = v
			}
			if known[l[1]] == value {
				got = append(got, l[1])
			}
		}
		if !slices.Equal(got, m.want) || len(got) != hops+1 {
			t.Errorf("following the text gives %v, the task wants %v", got, m.want)
		}
		if strings.Count(m.text, "Memorize and track") != 2 ||
			strings.Count(variableTracking(random(), 40, 0, 4096).text, "Memorize and track") != 1 {
			t.Error("the solved example is there without being asked for, or the other way round")
		}
	})
	t.Run("words", func(t *testing.T) {
		for _, tokens := range []int{2048, 8192} {
			m := commonWords(random(), 60, 0, tokens)
			expectMostFrequent(t, regexp.MustCompile(`\d+\. ([a-z]+)`).FindAllStringSubmatch(m.text, -1), m.want, 10)
			m = frequentWords(random(), 600, 0, tokens)
			expectMostFrequent(t, regexp.MustCompile(`\b([a-z]{6})\b`).FindAllStringSubmatch(
				m.text[strings.Index(m.text, "coded words. ")+13:strings.Index(m.text, "\nQuestion")], -1), m.want, 3)
		}
	})
}

func expectMostFrequent(t *testing.T, words [][]string, want []string, n int) {
	t.Helper()
	counts := map[string]int{}
	for _, w := range words {
		counts[w[1]]++
	}
	least, most := 1<<30, 0 // of the wanted, of the others
	for w, times := range counts {
		if slices.Contains(want, w) {
			least = min(least, times)
		} else {
			most = max(most, times)
		}
	}
	if len(want) != n || least <= most || least == 1<<30 {
		t.Errorf("%d words wanted, the rarest %d times; another is there %d times", len(want), least, most)
	}
}

// The published rule: any case, anything around it, a share.
func TestScoringIsStringMatchAll(t *testing.T) {
	for answer, hits := range map[string]int{"They are abcde, FGHIJ.": 2, "ABCDEFGHIJ": 2, "abcd": 0, "": 0,
		"the FGHIJ": 1} {
		if got := Match(answer, []string{"ABCDE", "FGHIJ"}); got != hits {
			t.Errorf("%q: %d, want %d", answer, got, hits)
		}
	}
}

// No word may be part of another: the scoring would find it there.
func TestNoWordContainsAnother(t *testing.T) {
	words := newKeys(random(), 2000, word)
	all := fmt.Sprint(words)
	for _, w := range words {
		if strings.Count(all, w) != 1 {
			t.Fatalf("%s is part of another word", w)
		}
	}
}

// The same seed must make the same task, whatever else is made.
func TestSeedMakesTheTask(t *testing.T) {
	for _, g := range generators {
		one := g.make(source(Options{Seed: 1}, g.name, 4096, 3), g.least+g.step, 1, 4096)
		two := g.make(source(Options{Seed: 1, Samples: 9}, g.name, 4096, 3), g.least+g.step, 1, 4096)
		other := g.make(source(Options{Seed: 2}, g.name, 4096, 3), g.least+g.step, 1, 4096)
		if one.text != two.text || one.text == other.text || len(one.want) == 0 {
			t.Errorf("%s: the seed does not decide", g.name)
		}
	}
}
