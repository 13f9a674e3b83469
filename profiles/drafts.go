package profiles

import (
	"fmt"
	"slices"
	"strings"
)

// DraftKind names what proposes tokens. The names are those of the server's probe, of --draft and of manifests.
type DraftKind string

const (
	NoDraft DraftKind = "none"
	MTP     DraftKind = "mtp"     // the model's own multi-token head
	DFlash2 DraftKind = "dflash2" // a separate block-parallel draft model
)

// Draft is all that programs say of a kind of draft. engine/host has how each is opened.
type Draft struct {
	Kind  DraftKind
	What  string // what it is, for help texts
	Usual int    // tokens that it proposes at a time where nobody says otherwise; 0: it proposes none
	Most  int    // tokens that it can propose at a time

	lacking string // why a model goes without it, a clause
	has     func(Candidate) bool
	price   func(*Costs, Geometry, *DraftGeometry, KVFormat)
}

// drafts are all kinds, that of no draft first. An MTP head proposes one token by default, which gains least and costs
// least, as on Metal more than one rarely pays; a DFlash2 draft proposes three, as blocks of more than 4 rows cost more
// to verify than they gain.
var drafts = []Draft{
	{Kind: NoDraft, has: func(Candidate) bool { return true },
		price: func(*Costs, Geometry, *DraftGeometry, KVFormat) {}},
	{Kind: MTP, What: "the model's own head", Usual: 1, Most: MostMTPTokens,
		lacking: "these weights have no MTP head",
		has:     func(m Candidate) bool { return m.Geometry.MTPLayers > 0 }, price: priceMTP},
	{Kind: DFlash2, What: "a draft model of its own", Usual: 3, Most: MostDraftTokens,
		lacking: "this model has no DFlash2 draft",
		has:     func(m Candidate) bool { return m.DFlash2 != nil }, price: priceDFlash2},
}

// MostDraftTokens is how many tokens any draft proposes at a time: a DFlash2 block of 8 holds 7. An MTP head drafts
// each token from its own row of the one before, which is worth less each time: at most MostMTPTokens.
const (
	MostDraftTokens = 7
	MostMTPTokens   = 4
)

// DraftOf finds a kind by its name.
func DraftOf(name DraftKind) (Draft, bool) {
	at := slices.IndexFunc(drafts, func(d Draft) bool { return d.Kind == name })
	if at < 0 {
		return Draft{}, false
	}
	return drafts[at], true
}

// DraftNames are the names of all kinds, "none" first.
func DraftNames() []string {
	var names []string
	for _, d := range drafts {
		names = append(names, string(d.Kind))
	}
	return names
}

// DraftChoices are the names as a sentence has them, "none" last.
func DraftChoices() string {
	names := DraftNames()
	return strings.Join(names[1:], ", ") + " or " + names[0]
}

// DraftHelp lists the kinds for a flag's help text: "mtp, the model's own head; ...; or none".
func DraftHelp() string {
	var b strings.Builder
	for _, d := range drafts[1:] {
		fmt.Fprintf(&b, "%s, %s; ", d.Kind, d.What)
	}
	return b.String() + "or " + string(drafts[0].Kind)
}

// UsualDraftTokens says how many tokens each kind proposes: "1 of mtp, 3 of dflash2".
func UsualDraftTokens() string {
	var said []string
	for _, d := range drafts[1:] {
		said = append(said, fmt.Sprintf("%d of %s", d.Usual, d.Kind))
	}
	return strings.Join(said, ", ")
}

// choice is the kind with its usual number of tokens.
func (d Draft) choice() DraftChoice { return DraftChoice{d.Kind, d.Usual} }

// priceMTP adds the head's weights and its keys and values.
func priceMTP(c *Costs, g Geometry, _ *DraftGeometry, format KVFormat) {
	if g.MTPLayers > 0 {
		c.MTPBytes = roundUp(g.MTPBytes, pageBytes)
		c.MTPKVBytesPerToken = g.MTPKVBytesPerToken(format)
	}
}

// priceDFlash2 adds the draft's weights, its ring and its context rows.
func priceDFlash2(c *Costs, g Geometry, d *DraftGeometry, format KVFormat) {
	if d != nil {
		c.DraftBytes = roundUp(d.WeightsBytes, pageBytes)
		c.StateBytes += d.SequenceBytes(format, g.HiddenSize)
		c.RestorePointBytes += d.PointBytes(g.HiddenSize)
	}
}
