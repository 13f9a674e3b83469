package needle

import (
	"math/rand/v2"
	"strings"
)

// The names of codes: two words that say nothing about each other, more than 5,000 pairs.
var (
	adjectives = strings.Fields(
		`amber ancient azure bold brave bright calm clever cold crimson curious dark deep distant eager early emerald
		empty faded gentle giant golden green grey hidden high hollow humble icy indigo iron ivory jolly kind late light little lively
		lonely long loud lucky merry mighty misty narrow noble northern odd old patient plain polite proud purple quick quiet rapid red round`)
	nouns = strings.Fields(`anchor apricot atlas badger bakery balcony barge beacon birch bison boulder bridge cabin canyon castle cedar chapel
		cliff cobra comet copper coral cottage crane crater crystal cypress delta depot desert diamond dolphin dune eagle ember falcon
		ferry fjord forest fossil fountain garden geyser glacier granite harbor hawk hazel heron island jasper jungle kestrel lagoon
		lantern lark lemon library lighthouse linden lotus magnet mango maple marble market meadow mill monsoon mountain museum nectar
		oasis ocean olive orchard orchid osprey otter palace panther pasture`)
)

func name(r *rand.Rand) string {
	return adjectives[r.IntN(len(adjectives))] + " " + nouns[r.IntN(len(nouns))]
}

// Name is a random name that none of the others has a word in common with, so that no two can be taken for each other.
func Name(r *rand.Rand, others []string) string {
	taken := strings.Fields(strings.Join(others, " "))
	for {
		n := name(r)
		clash := false
		for _, word := range strings.Fields(n) {
			for _, t := range taken {
				clash = clash || t == word
			}
		}
		if !clash {
			return n
		}
	}
}

func code(r *rand.Rand) string {
	digits := make([]byte, 6)
	for i := range digits {
		digits[i] = byte('0' + r.IntN(10))
	}
	return string(digits)
}

// Code is six random digits.
func Code(r *rand.Rand) string { return code(r) }

func fact(name, code string) string { return "Note: the code of the " + name + " is " + code + "." }

// Fact is the line that holds a code, in the words that Pocket was trained on; Ask is the question for one, AskAll for
// all.
func Fact(name, code string) string { return fact(name, code) }

func Ask(name string) string { return "What is the access code for the " + name + "?" }

const AskAll = "List every access code in the document, in order."
