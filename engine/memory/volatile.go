package memory

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Change is the piece of text that differs between a prompt and what was known, widened to whole words.
type Change struct {
	Place    string // the text before it, the last placeChars of it
	Old, New string
	Rejoins  bool // the same text follows on both sides: a value was exchanged, not the whole text
}

// Widths of a change, in bytes. A place of 24 names the key or the sentence that holds the value; a value of 48 holds a
// UUID or a time with its zone.
const (
	placeChars = 24
	valueChars = 48
)

// wordEnds are the characters at which a value ends: white space and what JSON, XML and prose put around one.
const wordEnds = " \t\r\n\"'`<>{}[](),;|"

// ChangeAt cuts the change out of the texts around a difference: before is shared, old and new begin with the first ids
// that differ. Their text can still begin alike (" 7" is two tokens, " a" is one), and can differ in a word's end
// alone.
func ChangeAt(before, old, new string) Change {
	alike := sharedChars(old, new)
	before, old, new = before+old[:alike], old[alike:], new[alike:]
	at := strings.LastIndexAny(before, wordEnds) + 1
	head := before[at:]
	if len(head) > valueChars {
		at, head = len(before), "" // no value is that long: it is text without white space
	}
	oldWord, newWord := word(old), word(new)
	if oldWord == newWord {
		oldWord, newWord = clip(old), clip(new)
	}
	return Change{Place: last(before[:at], placeChars), Old: head + oldWord, New: head + newWord,
		Rejoins: rejoins(old[len(oldWord):], new[len(newWord):])}
}

// rejoinChars is how much equal text shows that both sides go on alike.
const rejoinChars = 8

func rejoins(a, b string) bool {
	n := min(len(a), len(b), rejoinChars)
	return n > 0 && a[:n] == b[:n]
}

func word(s string) string {
	if at := strings.IndexAny(s, wordEnds); at >= 0 {
		s = s[:at]
	}
	return clip(s)
}

func clip(s string) string { return s[:min(len(s), valueChars)] }

// sharedChars is the length in bytes of the whole characters that a and b both begin with.
func sharedChars(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

var shapes = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"a UUID", regexp.MustCompile(
		`^[^0-9a-zA-Z]*(?i:[a-z]+[-_:=])?(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\W*$`)},
	{"a date and time", regexp.MustCompile(`\d{4}-\d\d-\d\d[T_ ]\d\d[:.]?\d\d`)},
	{"a date", regexp.MustCompile(`\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4}`)},
	{"a time of day", regexp.MustCompile(`^\D{0,8}\d\d?:\d\d(:\d\d)?`)},
}

var (
	digits   = regexp.MustCompile(`\d+`)
	idLetter = regexp.MustCompile(`^(?i:[a-z]+[-_:=#])?[0-9A-Za-z_-]{6,}$`)
)

// Shape says what kind of value changed: "a UUID", "a date", "a counter", "an id"; empty where it looks like ordinary
// text.
func (c Change) Shape() string {
	for _, s := range shapes {
		if s.pattern.MatchString(c.Old) && s.pattern.MatchString(c.New) {
			return s.name
		}
	}
	oldNumber, newNumber := digits.FindString(c.Old), digits.FindString(c.New)
	sameFrame := digits.ReplaceAllString(c.Old, "0") == digits.ReplaceAllString(c.New, "0")
	if sameFrame && oldNumber != "" {
		a, errA := strconv.ParseInt(oldNumber, 10, 64)
		b, errB := strconv.ParseInt(newNumber, 10, 64)
		if errA == nil && errB == nil && b > a && b-a <= 16 {
			return "a counter"
		}
		return "a number"
	}
	if idLetter.MatchString(c.Old) && idLetter.MatchString(c.New) && digits.MatchString(c.Old+c.New) {
		return "an id"
	}
	return ""
}

// Volatile recognises text that differs in every request, from the changes of successive requests. The zero value is
// ready.
type Volatile struct{ places []place }

type place struct {
	text   string
	values map[string]bool
}

// Bounds of what is watched.
const (
	volatileAfter = 3  // different values at one place; two may be an edit
	wordsAfter    = 6  // where they have no digit: a few may be prompts that differ in a word
	mostPlaces    = 32 // watched at once, the latest
	mostValues    = 8
)

// Observe takes the change that a request missed by. found is true once its place had volatileAfter different values,
// or wordsAfter.
func (v *Volatile) Observe(c Change) (found bool) {
	if !c.Rejoins {
		return false
	}
	at := -1
	for i := range v.places {
		if v.places[i].text == c.Place {
			at = i
		}
	}
	p := place{text: c.Place, values: map[string]bool{}}
	if at >= 0 {
		p = v.places[at]
		v.places = append(v.places[:at:at], v.places[at+1:]...)
	}
	for _, value := range []string{c.Old, c.New} {
		if len(p.values) < mostValues {
			p.values[value] = true
		}
	}
	v.places = append(v.places, p)
	if len(v.places) > mostPlaces {
		v.places = v.places[1:]
	}
	if !digits.MatchString(c.Old + c.New) {
		return len(p.values) >= wordsAfter
	}
	return len(p.values) >= volatileAfter
}

// Advice says what to do about text that differs in every request.
func (c Change) Advice() string {
	what := c.Shape()
	if what == "" {
		what = "text"
	}
	return fmt.Sprintf("%s changes with every request, so everything after it is computed again each time: leave "+
		"it out, put it at the end of the prompt, or make it stable with a normalize rule", what)
}
