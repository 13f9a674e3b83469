package structured

import "math"

// kind is a kind of JSON value. Booleans, null, constants and enumerations are literals.
type kind uint8

const (
	literalKind kind = iota
	numberKind
	stringKind
	objectKind
	arrayKind
)

// node is a schema: the kinds of value that it allows. A schema that refers to itself is a cycle of nodes.
type node struct {
	own     []*leaf // of this schema itself
	options []*node // of anyOf, and the target of $ref

	leaves []*leaf // own and those of all options; set by finish
	least  int     // levels of objects and lists that its flattest value has; impossible if it has no value
}

// leaf is one kind of value that a node allows.
type leaf struct {
	kind     kind
	literals *trie    // of literals: their JSON
	number   *numbers // of numbers
	text     *texts   // of strings

	// Of objects. Members come in the order of properties.
	properties []property
	names      *trie // the names of properties as JSON with the closing quote; ends are indices of properties
	extra      *node // of members that are not listed; nil: there are none

	// Of lists.
	items              *node
	minItems, maxItems int // maxItems negative: no bound

	least int
}

type property struct {
	name     string
	value    *node
	required bool
}

// impossible is the least of what has no value.
const impossible = math.MaxInt32

// finish sets leaves and least of every node. least is the smallest solution: a schema whose every value would hold
// another value of it has none.
func finish(nodes []*node) {
	for _, n := range nodes {
		n.leaves, n.least = nil, impossible
		seen := map[*node]bool{}
		var collect func(*node)
		collect = func(m *node) {
			if seen[m] {
				return
			}
			seen[m] = true
			n.leaves = append(n.leaves, m.own...)
			for _, option := range m.options {
				collect(option)
			}
		}
		collect(n)
		for _, l := range n.leaves {
			l.least = impossible
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range nodes {
			for _, l := range n.leaves {
				if least := l.leastNow(); least < l.least {
					l.least, changed = least, true
				}
				if l.least < n.least {
					n.least, changed = l.least, true
				}
			}
		}
	}
}

// leastNow is the least of a leaf by what is known of its members.
func (l *leaf) leastNow() int {
	deepest := 0
	switch l.kind {
	case literalKind:
		if l.literals.empty() {
			return impossible
		}
		return 0
	case numberKind:
		if !l.number.canComplete("") {
			return impossible
		}
		return 0
	case stringKind:
		if !l.text.possible() {
			return impossible
		}
		return 0
	case objectKind:
		for _, p := range l.properties {
			if p.required {
				deepest = max(deepest, p.value.least)
			}
		}
	case arrayKind:
		if l.maxItems >= 0 && l.maxItems < l.minItems {
			return impossible
		}
		if l.minItems > 0 {
			deepest = l.items.least
		}
	}
	if deepest >= impossible {
		return impossible
	}
	return deepest + 1
}
