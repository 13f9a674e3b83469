package structured

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostPatternStates bounds the states of one pattern, lengths included.
const mostPatternStates = 1024

// pattern is a regular expression, with bounds of length, as a deterministic automaton over characters. Characters that
// nothing tells apart are a class. From every state a string that is accepted can be reached.
type pattern struct {
	start   int32 // negative: no string is accepted
	bounds  []rune
	next    [][]int32 // [state][class]; negative: none
	accepts []bool
	escape  []bool // states that take a character that is written as \ and one letter
}

// class of a character: the number of bounds at or below it.
func (p *pattern) class(r rune) int {
	return sort.Search(len(p.bounds), func(i int) bool { return p.bounds[i] > r })
}

func (p *pattern) step(state int32, r rune) int32 { return p.next[state][p.class(r)] }

// canStep reports whether a character between low and high, both included, leads on.
func (p *pattern) canStep(state int32, low, high rune) bool {
	for c := p.class(low); c <= p.class(high); c++ {
		if p.next[state][c] >= 0 {
			return true
		}
	}
	return false
}

func (p *pattern) escapes(state int32) bool { return p.escape[state] }

// writable are the control characters that have a short escape; the others are not written in a string with a pattern.
const writable = "\b\f\n\r\t"

// newPattern compiles an expression in ECMA 262's syntax, as far as RE2 knows it too. It is looked for anywhere in the
// string. most negative: no bound. An empty expression bounds the length alone.
func newPattern(expression string, least, most int) (*pattern, error) {
	expression, err := fromECMA(expression)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("is not understood (%v); use a simpler expression", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("is not understood (%v); use a simpler expression", err)
	}
	b := &patternBuilder{prog: prog, least: least, most: most, ids: map[string]int32{}}
	if err := b.build(); err != nil {
		return nil, err
	}
	return b.p, nil
}

// What ECMA 262 means by \s and by a dot, which RE2 takes more narrowly and more widely.
const (
	ecmaSpace = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaDot   = `[^\n\r\x{2028}\x{2029}]`
)

// fromECMA writes an expression of ECMA 262 in RE2's syntax and makes the search unanchored.
func fromECMA(expression string) (string, error) {
	var out strings.Builder
	out.WriteString(`(?s:.)*?(?:`)
	inClass := false
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case c == '\\' && i+1 < len(expression):
			i++
			switch c := expression[i]; {
			case c == 'u' && i+4 < len(expression) && isHex(expression[i+1:i+5]):
				out.WriteString(`\x{` + expression[i+1:i+5] + `}`)
				i += 4
			case c == 's' && inClass:
				out.WriteString(ecmaSpace)
			case c == 's':
				out.WriteString(`[` + ecmaSpace + `]`)
			case c == 'S' && inClass:
				return "", fmt.Errorf(`has \S between brackets, which is not supported`)
			case c == 'S':
				out.WriteString(`[^` + ecmaSpace + `]`)
			default:
				out.WriteByte('\\')
				out.WriteByte(c)
			}
		case c == '.' && !inClass:
			out.WriteString(ecmaDot)
		default:
			inClass = c == '[' || inClass && c != ']'
			out.WriteByte(c)
		}
	}
	out.WriteString(`)(?s:.)*`)
	return out.String(), nil
}

func isHex(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }) < 0
}

// patternBuilder makes the automaton by the construction of subsets. A state is a set of instructions at which the
// search may stand, and the number of characters up to the bound that matters.
type patternBuilder struct {
	prog        *syntax.Prog
	least, most int
	p           *pattern
	ids         map[string]int32
	states      []patternState
}

type patternState struct {
	at         []uint32 // rune and match instructions, sorted
	characters int
	ends       bool // the expression matches if the string ends here
}

func (b *patternBuilder) build() error {
	b.p = &pattern{}
	var bounds []rune
	for i := range b.prog.Inst {
		in := &b.prog.Inst[i]
		switch in.Op {
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
				return fmt.Errorf("has a boundary of words or lines, which is not supported")
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			for _, r := range runesOf(in) {
				bounds = append(bounds, r[0], r[1]+1)
			}
		}
	}
	for _, r := range writable + "\"\\" {
		bounds = append(bounds, r, r+1)
	}
	bounds = append(bounds, ' ', 0xd800, 0xe000, utf8.MaxRune+1)
	slices.Sort(bounds)
	b.p.bounds = slices.Compact(bounds)
	classes := len(b.p.bounds) + 1

	start, err := b.state([]uint32{uint32(b.prog.Start)}, 0, true)
	if err != nil {
		return err
	}
	for id := 0; id < len(b.states); id++ {
		row := make([]int32, classes)
		for c := range row {
			row[c] = -1
			r, ok := b.representative(c)
			if !ok || b.most >= 0 && b.states[id].characters >= b.most {
				continue
			}
			var next []uint32
			for _, at := range b.states[id].at {
				if in := &b.prog.Inst[at]; takes(in, r) {
					next = append(next, in.Out)
				}
			}
			if row[c], err = b.state(next, b.states[id].characters+1, false); err != nil {
				return err
			}
		}
		b.p.next = append(b.p.next, row)
	}
	b.finish(start)
	return nil
}

// representative is a character of a class, false where none of it is ever written.
func (b *patternBuilder) representative(class int) (rune, bool) {
	var r rune
	if class > 0 {
		r = b.p.bounds[class-1]
	}
	return r, r <= utf8.MaxRune && (r < 0xd800 || r >= 0xe000) && (r >= ' ' || strings.ContainsRune(writable, r))
}

// state gives the number of the state that stands at these instructions, negative where there are none.
func (b *patternBuilder) state(at []uint32, characters int, begin bool) (int32, error) {
	s := patternState{characters: characters}
	seen := map[uint32]bool{}
	var follow func(pc uint32, atEnd bool)
	ended := map[uint32]bool{}
	follow = func(pc uint32, atEnd bool) {
		marks := seen
		if atEnd {
			marks = ended
		}
		if marks[pc] {
			return
		}
		marks[pc] = true
		switch in := &b.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			follow(in.Out, atEnd)
			follow(in.Arg, atEnd)
		case syntax.InstCapture, syntax.InstNop:
			follow(in.Out, atEnd)
		case syntax.InstEmptyWidth:
			op := syntax.EmptyOp(in.Arg)
			if op&syntax.EmptyBeginText != 0 && !begin {
				return
			}
			follow(in.Out, atEnd || op&syntax.EmptyEndText != 0)
		case syntax.InstMatch:
			s.ends = true
			if !atEnd {
				s.at = append(s.at, pc)
			}
		case syntax.InstFail:
		default:
			if !atEnd {
				s.at = append(s.at, pc)
			}
		}
	}
	for _, pc := range at {
		follow(pc, false)
	}
	if len(s.at) == 0 && !s.ends {
		return -1, nil
	}
	slices.Sort(s.at)
	bound := b.least
	if b.most >= 0 {
		bound = b.most
	}
	s.characters = min(s.characters, bound)
	key := fmt.Sprint(s.at, s.characters, s.ends)
	if id, ok := b.ids[key]; ok {
		return id, nil
	}
	if len(b.states) == mostPatternStates {
		return 0, fmt.Errorf("has more than %d states with its bounds of length; use a simpler one", mostPatternStates)
	}
	id := int32(len(b.states))
	b.ids[key] = id
	b.states = append(b.states, s)
	return id, nil
}

// finish takes out what leads to no accepted string.
func (b *patternBuilder) finish(start int32) {
	p := b.p
	alive := make([]bool, len(b.states))
	p.accepts = make([]bool, len(b.states))
	for id, s := range b.states {
		p.accepts[id] = s.ends && s.characters >= b.least
		alive[id] = p.accepts[id]
	}
	for changed := true; changed; {
		changed = false
		for id, row := range p.next {
			for _, next := range row {
				if next >= 0 && alive[next] && !alive[id] {
					alive[id], changed = true, true
				}
			}
		}
	}
	p.escape = make([]bool, len(b.states))
	for id, row := range p.next {
		for c, next := range row {
			if next >= 0 && !alive[next] {
				row[c] = -1
			}
		}
		for _, r := range writable + "\"\\/" {
			p.escape[id] = p.escape[id] || p.step(int32(id), r) >= 0
		}
	}
	p.start = start
	if start >= 0 && !alive[start] {
		p.start = -1
	}
}

// takes reports whether an instruction takes a character.
func takes(in *syntax.Inst, r rune) bool {
	switch in.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return in.MatchRune(r)
	}
	return false
}

// runesOf are the ranges of characters that an instruction takes.
func runesOf(in *syntax.Inst) (ranges [][2]rune) {
	switch in.Op {
	case syntax.InstRuneAny:
		return [][2]rune{{0, utf8.MaxRune}}
	case syntax.InstRuneAnyNotNL:
		return [][2]rune{{0, '\n' - 1}, {'\n' + 1, utf8.MaxRune}}
	}
	if len(in.Rune) == 1 {
		r0 := in.Rune[0]
		ranges = append(ranges, [2]rune{r0, r0})
		for r := unicode.SimpleFold(r0); r != r0; r = unicode.SimpleFold(r) {
			ranges = append(ranges, [2]rune{r, r})
		}
		return ranges
	}
	for i := 0; i+1 < len(in.Rune); i += 2 {
		ranges = append(ranges, [2]rune{in.Rune[i], in.Rune[i+1]})
	}
	return ranges
}
