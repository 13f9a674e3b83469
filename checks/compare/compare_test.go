package compare

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"slipway/checks/record"
)

// The exact sign test, against binomial sums worked by hand.
func TestSignTest(t *testing.T) {
	for _, row := range []struct {
		a, b int
		p    float64
	}{{0, 0, 1}, {5, 0, 0.0625}, {6, 0, 0.03125}, {8, 2, 0.109375}, {9, 1, 0.021484}, {5, 5, 1}, {0, 400, 0}} {
		if p := signTest(row.a, row.b); math.Abs(p-row.p) > 1e-5 {
			t.Errorf("%d against %d: %v, want %v", row.a, row.b, p, row.p)
		}
	}
}

func answers(hits ...int) []record.Answer {
	var all []record.Answer
	for i, h := range hits {
		all = append(all, record.Answer{Task: strconv.Itoa(i), Request: "r" + strconv.Itoa(i), Group: "g", Hits: h,
			Of: 4, Text: strconv.Itoa(h)})
	}
	return all
}

// A difference that chance makes must not be called one, and one that chance does not make must be.
func TestDecision(t *testing.T) {
	good, bad := answers(4, 4, 4, 4, 4, 4, 4, 4), answers(3, 2, 4, 1, 2, 3, 3, 0)
	one := answers(4, 4, 4, 3, 4, 4, 4, 4)
	for _, row := range []struct {
		a, b []record.Answer
		want Decision
	}{{good, bad, Worse}, {bad, good, Better}, {good, one, Undecided}, {good, good, Identical}} {
		r, err := Pair(record.Setup{}, row.a, record.Setup{URL: "other"}, row.b)
		if err != nil || r.Decision != row.want {
			t.Errorf("%+v %v, want %s", r, err, row.want)
		}
	}
	r, _ := Pair(record.Setup{}, good, record.Setup{}, bad)
	if r.Shift != -14.0/32 || r.Low >= r.Shift || r.High >= 0 || r.ABetter != 7 || r.BBetter != 0 {
		t.Errorf("%+v", r)
	}
}

// Runs that asked something else must not be compared.
func TestDifferentRunsAreRefused(t *testing.T) {
	var unlike *UnlikeError
	if _, err := Pair(record.Setup{Seed: 1}, answers(1), record.Setup{Seed: 2}, answers(1)); !errors.As(err, &unlike) ||
		!strings.Contains(err.Error(), "seed 1 and 2") {
		t.Error(err)
	}
	other := answers(1)
	other[0].Request = "another text"
	if _, err := Pair(record.Setup{}, answers(1), record.Setup{}, other); !errors.As(err, &unlike) {
		t.Error(err)
	}
	if _, err := Pair(record.Setup{}, answers(1, 2), record.Setup{}, answers(1)); !errors.As(err, &unlike) {
		t.Error(err)
	}
}
