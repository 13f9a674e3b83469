package ruler

import (
	"math/rand/v2"
	"strings"
)

// syllables make words that can be read and that no dictionary need hold. All words have seven letters, so that none
// is part of another and is found there by the scoring.
var syllables = strings.Fields(
	`ba be bi bo bu da de di do du fa fe fi fo ga ge gi go gu ha he hi ho ja je jo ka ke ki ko ku la le li lo lu
	ma me mi mo mu na ne ni no nu pa pe pi po pu ra re ri ro ru sa se si so su ta te ti to tu va ve vi vo wa we wi wo za ze zi zo`)

const endings = "lmnrstx"

func word(r *rand.Rand) string {
	w := ""
	for range 3 {
		w += syllables[r.IntN(len(syllables))]
	}
	return w + endings[r.IntN(len(endings)):][:1]
}
