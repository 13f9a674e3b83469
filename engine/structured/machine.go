package structured

// mostNesting bounds the objects and lists inside each other.
const mostNesting = 48

// frameKind says what is open.
type frameKind uint8

const (
	endFrame     frameKind = iota // below everything: the reply is complete
	valueFrame                    // a value is to come
	literalFrame                  // in a literal
	numberFrame
	stringFrame
	objectFrame
	nameFrame // in the name of a listed member, above its objectFrame
	extraFrame
	arrayFrame
)

// phase is where an object or a list stands.
type phase uint8

const (
	opened   phase = iota // behind { or [
	beforeIn              // behind a comma
	colon                 // behind a name
	afterIn               // behind a value
)

// stack is what is open, innermost first. It is never changed, so that stacks share what is below.
type stack struct {
	kind   frameKind
	phase  phase
	blanks blanks
	nest   int16 // objects and lists that are open, this one included

	node *node // valueFrame: what is to come; objectFrame in colon: the value of the name
	leaf *leaf
	trie *trie // literalFrame, nameFrame: what may follow

	text   textState // stringFrame, extraFrame
	number string    // what has come of a number, or of the name in extraFrame
	at     int       // objectFrame: index of the next property; arrayFrame: values that have come
	extras *names    // objectFrame: names of unlisted members

	below *stack
}

// names is a list of names that are taken.
type names struct {
	name string
	next *names
}

func (n *names) has(name string) bool {
	for ; n != nil; n = n.next {
		if n.name == name {
			return true
		}
	}
	return false
}

// state is everything that what was written so far may be: one stack an alternative.
type state []*stack

// begin is the state before the first byte.
func begin(root *node) state {
	return state{{kind: valueFrame, node: root, below: &stack{kind: endFrame}}}
}

// step takes one byte: appended to into are the stacks that are left.
func (s state) step(b byte, into state) state {
	for _, k := range s {
		into = k.step(b, into)
	}
	return into
}

// complete reports whether the reply may end here.
func (s state) complete() bool {
	for _, k := range s {
		switch {
		case k.kind == endFrame,
			k.kind == numberFrame && k.below.kind == endFrame && k.leaf.number.accepts(k.number),
			k.kind == literalFrame && k.below.kind == endFrame && k.trie.end >= 0:
			return true
		}
	}
	return false
}

func (k *stack) step(b byte, into state) state {
	switch k.kind {
	case valueFrame:
		return k.stepValue(b, into)
	case literalFrame:
		return k.stepLiteral(b, into)
	case numberFrame:
		if k.leaf.number.step(k.number, b) {
			next := *k
			next.number += string(rune(b))
			into = append(into, &next)
		}
		if k.leaf.number.accepts(k.number) {
			into = k.below.step(b, into)
		}
	case stringFrame:
		next := *k
		switch k.leaf.text.step(&next.text, b) {
		case inString:
			into = append(into, &next)
		case closed:
			into = append(into, k.below)
		}
	case objectFrame:
		return k.stepObject(b, into)
	case nameFrame:
		return k.stepName(b, into)
	case extraFrame:
		return k.stepExtra(b, into)
	case arrayFrame:
		return k.stepArray(b, into)
	}
	return into
}

// blank takes a blank where one may come.
func (k *stack) blank(b byte, into state) (state, bool) {
	begin, indent := k.kind == valueFrame && k.below.kind == endFrame, blanksOfLevel*int(k.nest)
	if k.kind == valueFrame { // behind a colon
		indent = -1
	}
	w, ok := k.blanks.step(b, indent, begin)
	if !ok {
		return into, false
	}
	next := *k
	next.blanks = w
	return append(into, &next), true
}

func (k *stack) stepValue(b byte, into state) state {
	if into, ok := k.blank(b, into); ok {
		return into
	}
	nest := k.below.nest
	for _, l := range k.node.leaves {
		if l.least >= impossible || int(nest)+l.least > mostNesting {
			continue
		}
		switch l.kind {
		case literalKind:
			into = (&stack{kind: literalFrame, leaf: l, trie: l.literals, nest: nest, below: k.below}).step(b, into)
		case numberKind:
			if l.number.step("", b) {
				into = append(into, &stack{kind: numberFrame, leaf: l, number: string(rune(b)), nest: nest,
					below: k.below})
			}
		case stringKind:
			if b == '"' {
				into = append(into, &stack{kind: stringFrame, leaf: l, text: l.text.begin(), nest: nest,
					below: k.below})
			}
		case objectKind:
			if b == '{' {
				into = append(into, &stack{kind: objectFrame, leaf: l, nest: nest + 1, below: k.below})
			}
		case arrayKind:
			if b == '[' {
				into = append(into, &stack{kind: arrayFrame, leaf: l, nest: nest + 1, below: k.below})
			}
		}
	}
	return into
}

// stepLiteral goes on in a literal, and beyond one that is complete: 1 may be the whole of it, and the beginning of 12.
func (k *stack) stepLiteral(b byte, into state) state {
	if k.trie.end >= 0 {
		into = k.below.step(b, into)
	}
	if trie := k.trie.step(b); trie != nil {
		if len(trie.next) == 0 {
			return append(into, k.below)
		}
		next := *k
		next.trie = trie
		into = append(into, &next)
	}
	return into
}

// room reports whether a value of a node fits below what is open.
func (k *stack) room(n *node) bool {
	return n != nil && n.least < impossible && int(k.nest)+n.least <= mostNesting
}

// lastProperty is the last index of a property that may come next: the first that is required, from at on.
func (k *stack) lastProperty() int {
	for i := k.at; i < len(k.leaf.properties); i++ {
		if k.leaf.properties[i].required {
			return i
		}
	}
	return len(k.leaf.properties) - 1
}

// mayEnd reports whether no required member is missing.
func (k *stack) mayEnd() bool {
	last := k.lastProperty()
	return last < k.at || !k.leaf.properties[last].required
}

// listed reports whether one of the names below a trie may come next.
func (k *stack) listed(t *trie) bool {
	last := k.lastProperty()
	for _, i := range t.under {
		if i >= k.at && i <= last && k.room(k.leaf.properties[i].value) {
			return true
		}
	}
	return false
}

// more reports whether a member may come.
func (k *stack) more() bool { return k.listed(k.leaf.names) || k.mayAddExtra() }

func (k *stack) mayAddExtra() bool { return k.mayEnd() && k.room(k.leaf.extra) }

func (k *stack) stepObject(b byte, into state) state {
	next := *k
	next.blanks = 0
	switch {
	case b == '}' && (k.phase == opened || k.phase == afterIn) && k.mayEnd():
		return append(into, k.below)
	case b == ',' && k.phase == afterIn && k.blanks == 0 && k.more():
		next.phase = beforeIn
		return append(into, &next)
	case b == '"' && (k.phase == opened || k.phase == beforeIn):
		if k.listed(k.leaf.names) {
			into = append(into, &stack{kind: nameFrame, trie: k.leaf.names, leaf: k.leaf, nest: k.nest, below: &next})
		}
		if k.mayAddExtra() {
			into = append(into, &stack{kind: extraFrame, leaf: k.leaf, nest: k.nest, below: &next})
		}
		return into
	case b == ':' && k.phase == colon:
		next.phase, next.node = afterIn, nil
		return append(into, &stack{kind: valueFrame, node: k.node, below: &next})
	case k.phase == colon:
		return into
	case k.phase == opened && !k.more(), k.phase == afterIn && !k.mayEnd():
		return into // a blank before what cannot come
	}
	into, _ = k.blank(b, into)
	return into
}

func (k *stack) stepName(b byte, into state) state {
	trie := k.trie.step(b)
	if trie == nil || !k.below.listed(trie) {
		return into
	}
	if trie.end >= 0 && b == '"' && len(trie.next) == 0 {
		object := *k.below
		object.phase, object.node, object.at = colon, k.leaf.properties[trie.end].value, trie.end+1
		return append(into, &object)
	}
	next := *k
	next.trie = trie
	return append(into, &next)
}

// stepExtra goes on in the name of an unlisted member. It is another than every listed one and than those before it.
func (k *stack) stepExtra(b byte, into state) state {
	if b == '\\' {
		return into
	}
	next := *k
	switch anyText.step(&next.text, b) {
	case inString:
		next.number += string([]byte{b})
		return append(into, &next)
	case closed:
		return k.close("", into)
	}
	return into
}

// close takes the closing quote of a string or of an unlisted name, which more is the rest of.
func (k *stack) close(more string, into state) state {
	if k.kind == stringFrame {
		return append(into, k.below)
	}
	name := k.number + more
	if k.leaf.listedName(name) || k.below.extras.has(name) {
		return into
	}
	object := *k.below
	object.phase, object.node = colon, k.leaf.extra
	object.extras = &names{name, object.extras}
	object.at = len(k.leaf.properties)
	return append(into, &object)
}

// anyText is a string without bounds.
var anyText = &texts{most: -1}

func (l *leaf) listedName(name string) bool {
	for i := range l.properties {
		if l.properties[i].name == name {
			return true
		}
	}
	return false
}

func (k *stack) stepArray(b byte, into state) state {
	l := k.leaf
	more := (l.maxItems < 0 || k.at < l.maxItems) && k.room(l.items)
	next := *k
	next.blanks = 0
	switch {
	case b == ']' && (k.phase == opened || k.phase == afterIn) && k.at >= l.minItems:
		return append(into, k.below)
	case b == ',' && k.phase == afterIn && k.blanks == 0 && more:
		next.phase = beforeIn
		return append(into, &next)
	case k.phase == opened && more || k.phase == beforeIn:
		if into, ok := k.blank(b, into); ok {
			return into
		}
		next.phase, next.at = afterIn, k.at+1
		return (&stack{kind: valueFrame, node: l.items, blanks: noBlanks, below: &next}).step(b, into)
	case k.phase == afterIn && k.at < l.minItems:
		return into // a blank before what cannot come
	}
	into, _ = k.blank(b, into)
	return into
}
