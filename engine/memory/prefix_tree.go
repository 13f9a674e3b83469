package memory

// node is a node of the radix tree. The path from the root to it spells depth ids; label is the last part of them.
type node struct {
	parent   *node
	label    []int32
	depth    int // ids from the root to the end of label
	children map[int32]*node
	points   []*Point // those that were saved after exactly this prefix
	seen     uint64   // tick of the last request that processed or asked for it
	lost     Lost     // why the point that was here is gone
}

// Lost says why the point of a prefix is gone. Zero: none is.
type Lost string

const (
	LostNoRoom     Lost = "no room"    // none was saved: what the budget held was worth more, or in use
	LostEvicted    Lost = "evicted"    // the budget was needed for something worth more
	LostThinned    Lost = "thinned"    // periodic points get sparse with distance
	LostSuperseded Lost = "superseded" // a nearer point replaced it
	LostCancelled  Lost = "cancelled"  // its request ended early and there was no room for what it had reached
	LostDamaged    Lost = "damaged"    // its file was torn or flipped
)

// common is the number of leading ids that are equal.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := 0; i < n; i++ {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// walk follows ids from the root as far as they are known. at is the deepest node that is passed whole or in part;
// inside is how many ids of its label matched; depth is how many ids are known in all.
func (root *node) walk(ids []int32, each func(*node)) (at *node, inside, depth int) {
	at = root
	for {
		if each != nil {
			each(at)
		}
		if depth == len(ids) {
			return at, len(at.label), depth
		}
		next := at.children[ids[depth]]
		if next == nil {
			return at, len(at.label), depth
		}
		n := common(next.label, ids[depth:])
		depth += n
		if n < len(next.label) {
			return next, n, depth
		}
		at = next
	}
}

// grow makes the node of exactly ids, splitting a label where needed. It returns how many ids are new.
func (root *node) grow(ids []int32) (n *node, added int) {
	at, inside, depth := root.walk(ids, nil)
	if inside < len(at.label) {
		at = at.split(inside)
	}
	if depth == len(ids) {
		return at, 0
	}
	leaf := &node{parent: at, label: append([]int32(nil), ids[depth:]...), depth: len(ids), seen: at.seen}
	at.adopt(leaf)
	return leaf, len(ids) - depth
}

func (n *node) adopt(child *node) {
	if n.children == nil {
		n.children = map[int32]*node{}
	}
	n.children[child.label[0]] = child
	child.parent = n
}

// split cuts n's label after inside ids and returns the upper part, a new node.
func (n *node) split(inside int) *node {
	upper := &node{label: n.label[:inside:inside], depth: n.depth - len(n.label) + inside, seen: n.seen}
	n.parent.adopt(upper)
	n.label = n.label[inside:]
	upper.adopt(n)
	return upper
}

// prune removes n and those above it that have neither points nor children. It returns how many ids were removed.
func (n *node) prune() (removed int) {
	for n.parent != nil && len(n.children) == 0 && len(n.points) == 0 {
		removed += len(n.label)
		delete(n.parent.children, n.label[0])
		n = n.parent
	}
	return removed
}

// ids spells the path to the node.
func (n *node) ids() []int32 {
	out := make([]int32, n.depth)
	for ; n.parent != nil; n = n.parent {
		copy(out[n.depth-len(n.label):], n.label)
	}
	return out
}

// each visits n and everything below it, parents first.
func (n *node) each(visit func(*node)) {
	visit(n)
	for _, child := range n.children {
		child.each(visit)
	}
}
