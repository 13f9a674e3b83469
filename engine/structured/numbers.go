package structured

import (
	"math/big"
	"strings"
)

// Digits of a number that is written here.
const (
	mostWholeDigits    = 18
	mostFractionDigits = 12
)

// numbers is what a number must be. Values are counted in units of the last digit behind the point that may be written.
type numbers struct {
	fraction   int      // digits behind the point, at most; 0: whole numbers
	exponent   bool     // may have one: nothing bounds the value
	low, high  *big.Int // in units; nil: no bound
	multipleOf *big.Int // in units; nil: of anything
	unit       *big.Int // units in 1
}

// bound sets the limits; nil means none. Exclusive ones leave the value itself out. False where multipleOf is no
// multiple of the smallest number that is written here.
func (n *numbers) bound(low, high *big.Rat, lowExclusive, highExclusive bool, multipleOf *big.Rat) bool {
	if multipleOf != nil && n.fraction > 0 {
		digits := 0
		for r := new(big.Rat).Set(multipleOf); !r.IsInt(); digits++ {
			if digits == mostFractionDigits {
				return false
			}
			r.Mul(r, big.NewRat(10, 1))
		}
		n.fraction = digits
	}
	n.unit = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.fraction)), nil)
	units := func(r *big.Rat) *big.Rat { return new(big.Rat).Mul(r, new(big.Rat).SetInt(n.unit)) }
	if multipleOf != nil {
		m := units(multipleOf)
		// A whole number is a multiple of a/b, in lowest terms, where it is one of a.
		n.multipleOf = new(big.Int).Set(m.Num())
	}
	if low != nil {
		n.low = floor(units(low))
		if r := units(low); !r.IsInt() || lowExclusive {
			n.low.Add(n.low, big.NewInt(1))
		}
	}
	if high != nil {
		r := units(high)
		n.high = floor(r)
		if r.IsInt() && highExclusive {
			n.high.Sub(n.high, big.NewInt(1))
		}
	}
	n.exponent = n.fraction > 0 && low == nil && high == nil && multipleOf == nil
	return true
}

// floor rounds down, as Div does for a positive divisor.
func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

// numberParts is the beginning of a number.
type numberParts struct {
	negative        bool
	whole, fraction string
	point           bool
	exponent        string // from e on
}

func cutNumber(text string) (p numberParts) {
	text, p.negative = strings.CutPrefix(text, "-")
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		text, p.exponent = text[:i], text[i:]
	}
	p.whole, p.fraction, p.point = strings.Cut(text, ".")
	return p
}

// step reports whether a number that began with text may go on with b.
func (n *numbers) step(text string, b byte) bool {
	p := cutNumber(text)
	digit := b >= '0' && b <= '9'
	switch {
	case p.exponent != "":
		rest := strings.TrimLeft(p.exponent, "eE+-")
		if b == '-' || b == '+' {
			return len(p.exponent) == 1
		}
		return digit && len(rest) < 2
	case b == '-':
		if text != "" {
			return false
		}
	case b == '.':
		if n.fraction == 0 || p.point || p.whole == "" {
			return false
		}
	case b == 'e' || b == 'E':
		return n.exponent && p.whole != "" && (!p.point || p.fraction != "")
	case !digit:
		return false
	case p.point:
		if len(p.fraction) == n.fraction {
			return false
		}
	case p.whole == "0" || len(p.whole) == mostWholeDigits:
		return false
	}
	return n.canComplete(text + string(b))
}

// accepts reports whether text is a number that is allowed.
func (n *numbers) accepts(text string) bool {
	p := cutNumber(text)
	if p.whole == "" || p.point && p.fraction == "" {
		return false
	}
	if p.exponent != "" {
		return p.exponent[len(p.exponent)-1] >= '0' && p.exponent[len(p.exponent)-1] <= '9'
	}
	low, high := n.reach(p, len(p.whole), false)
	return n.fits(p.negative, low, high)
}

// canComplete reports whether an allowed number begins with text.
func (n *numbers) canComplete(text string) bool {
	p := cutNumber(text)
	switch {
	case p.exponent != "":
		return true
	case p.whole == "":
		return n.fits(p.negative, new(big.Int), n.largest()) || text == "" && n.fits(true, new(big.Int), n.largest())
	case p.point:
		low, high := n.reach(p, len(p.whole), true)
		return n.fits(p.negative, low, high)
	}
	for digits := len(p.whole); digits <= mostWholeDigits; digits++ {
		low, high := n.reach(p, digits, true)
		if n.fits(p.negative, low, high) {
			return true
		}
		if p.whole == "0" {
			break
		}
	}
	return false
}

// largest is the largest number that is written here, in units.
func (n *numbers) largest() *big.Int {
	ten := big.NewInt(10)
	all := new(big.Int).Exp(ten, big.NewInt(int64(mostWholeDigits+n.fraction)), nil)
	return all.Sub(all, big.NewInt(1))
}

// reach gives the values, in units and without the sign, of numbers that begin with p and have so many digits before
// the point. With more, any digits may follow behind the point; else it is the value of p itself.
func (n *numbers) reach(p numberParts, wholeDigits int, more bool) (low, high *big.Int) {
	ten := big.NewInt(10)
	low, _ = new(big.Int).SetString(p.whole+p.fraction, 10)
	missing := wholeDigits - len(p.whole) + n.fraction - len(p.fraction)
	scale := new(big.Int).Exp(ten, big.NewInt(int64(missing)), nil)
	high = new(big.Int).Add(low, big.NewInt(1))
	low.Mul(low, scale)
	if !more {
		return low, low
	}
	return low, high.Mul(high, scale).Sub(high, big.NewInt(1))
}

// fits reports whether an allowed value lies between low and high, with the sign put before them.
func (n *numbers) fits(negative bool, low, high *big.Int) bool {
	if negative {
		low, high = new(big.Int).Neg(high), new(big.Int).Neg(low)
	}
	if n.low != nil && n.low.Cmp(low) > 0 {
		low = n.low
	}
	if n.high != nil && n.high.Cmp(high) < 0 {
		high = n.high
	}
	if low.Cmp(high) > 0 {
		return false
	}
	if n.multipleOf == nil {
		return true
	}
	below := new(big.Int).Div(high, n.multipleOf) // rounds down
	return below.Mul(below, n.multipleOf).Cmp(low) >= 0
}
