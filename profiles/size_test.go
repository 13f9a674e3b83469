package profiles_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"slipway/manifests"
	"slipway/profiles"
)

const (
	gib = int64(1) << 30
	mib = int64(1) << 20
)

func model(t testing.TB, id string) profiles.Candidate {
	t.Helper()
	m, ok := manifests.ByID(id)
	if !ok {
		t.Fatalf("no manifest %s", id)
	}
	return m.Candidate()
}

func profile(t testing.TB, id string) profiles.Profile {
	t.Helper()
	p, ok := profiles.ByID(id)
	if !ok {
		t.Fatalf("no profile %s", id)
	}
	return p
}

const bareSpeed = "qwen3.8-27b-mtplx-bare-speed"

// The geometry table of sizing.md section 2, number by number.
func TestBytesOfThe27B(t *testing.T) {
	c := model(t, bareSpeed)
	g, d := c.Geometry, *c.DFlash2
	for _, row := range []struct {
		what      string
		got, want int64
	}{
		{"KV per token, f16", g.KVBytesPerToken(profiles.F16), 65536},
		{"KV per token, 8 bit in groups of 64", g.KVBytesPerToken(profiles.Q8), 34816},
		{"KV per token, 4 bit in groups of 64", g.KVBytesPerToken(profiles.Q4), 18432},
		{"KV at 131,072 tokens, f16", 131072 * g.KVBytesPerToken(profiles.F16), 8 * gib},
		{"KV at 262,144 tokens, f16", 262144 * g.KVBytesPerToken(profiles.F16), 16 * gib},
		{"KV at 262,144 tokens, 8 bit", 262144 * g.KVBytesPerToken(profiles.Q8), 17 * gib / 2},
		{"MTP KV per token", g.MTPKVBytesPerToken(profiles.Q8), 4096},
		{"GDN snapshot", g.StateBytes(), 156893184},
		{"DFlash2 ring: a window of 2,048 and a block, in whole pages", d.RingBytes(profiles.Q8), 50 * mib},
		{"DFlash2 sequence: the ring and 2,304 context rows", d.SequenceBytes(profiles.Q8, g.HiddenSize), 72*mib +
			512*1024},
		{"one restore point with the draft's context rows", profiles.CostsOf(g, &d, profiles.Q8,
			profiles.DraftChoice{Kind: profiles.DFlash2, Tokens: 5}, 2048).RestorePointBytes, 169*mib + 640*1024},
		{"scratch", profiles.CostsOf(g, &d, profiles.Q8, profiles.DraftChoice{Kind: profiles.DFlash2, Tokens: 5},
			2048).ScratchBytes, 3 * gib},
		{"scratch without a draft", profiles.CostsOf(g, nil, profiles.F16, profiles.DraftChoice{Kind: profiles.NoDraft},
			2048).ScratchBytes, 3 * gib},
	} {
		if row.got != row.want {
			t.Errorf("%s: %d, want %d", row.what, row.got, row.want)
		}
	}
}

// The windows of sizing.md section 6: a 36 GB M4 Max, Bare-Speed with DFlash2. Windows in brackets there are what the
// memory alone would hold. That section counts a ring of 40 MiB for a sequence and for each point; the engine holds
// 72.5 MiB for a sequence and 20 MiB for a point, so that some windows differ by a step or two of 4,096.
func TestWorkedExampleOfSizing(t *testing.T) {
	c := model(t, bareSpeed)
	draft := profiles.DraftChoice{Kind: profiles.DFlash2, Tokens: 5}
	for _, row := range []struct {
		budget int64
		points int
		format profiles.KVFormat
		want   int64
	}{
		{27 * gib, 0, profiles.F16, 122880}, {27 * gib, 0, profiles.Q8, 233472}, {27 * gib, 0, profiles.Q4, 446464},
		{27 * gib, 4, profiles.F16, 114688}, {27 * gib, 4, profiles.Q8, 212992}, {27 * gib, 4, profiles.Q4, 409600},
		{27 * gib, 8, profiles.F16, 102400}, {27 * gib, 8, profiles.Q8, 196608}, {27 * gib, 8, profiles.Q4, 368640},
		{30_000_000_000, 4, profiles.F16, 126976}, {30_000_000_000, 4, profiles.Q8, 245760},
		{30_000_000_000, 4, profiles.Q4, 462848},
		{30 * gib, 4, profiles.F16, 163840}, {30 * gib, 4, profiles.Q8, 307200}, {30 * gib, 4, profiles.Q4, 581632},
	} {
		costs := profiles.CostsOf(c.Geometry, c.DFlash2, row.format, draft, 2048)
		got := costs.TokensWithin(row.budget, profiles.Load{Sequences: 1, RestorePoints: row.points}) / 4096 * 4096
		if got != row.want {
			t.Errorf("%d bytes, %d points, %s: %d, want %d", row.budget, row.points, row.format, got, row.want)
		}
	}
	// "with an MTP head ... at Q8 with a Q4 head, 27 GiB and 4 points, 221,184 instead of 249,856"
	mtp := profiles.CostsOf(c.Geometry, nil, profiles.Q8, profiles.DraftChoice{Kind: profiles.MTP, Tokens: 1}, 2048)
	load := profiles.Load{Sequences: 1, RestorePoints: 4}
	if got := mtp.TokensWithin(27*gib, load) / 4096 * 4096; got != 221184 {
		t.Errorf("with the MTP head: %d, want 221184", got)
	}
	mtp.MTPKVBytesPerToken = 0
	if got := mtp.TokensWithin(27*gib, load) / 4096 * 4096; got != 249856 {
		t.Errorf("with the MTP head and without its KV: %d, want 249856", got)
	}
	// The item list: what is left for KV.
	costs := profiles.CostsOf(c.Geometry, c.DFlash2, profiles.Q8, draft, 2048)
	left := 27*gib - costs.ProjectedBytes(load)
	if got := fmt.Sprintf("%.2f", float64(left)/float64(gib)); got != "7.04" {
		t.Errorf("left for KV %s GiB, want 7.04", got)
	}
}

// The reference setup itself: profile long on the 36 GB Mac. Its 30 GB budget is above what Metal allows, which must
// be said, and the window must be cut.
func TestReferenceBudgetAboveMetalIsCutAndSaid(t *testing.T) {
	r, err := profiles.Size(profiles.Input{Model: model(t, bareSpeed), Profile: profile(t, "long"),
		Machine: profiles.Machine{RAMBytes: 36 * gib, CapBytes: 27 * gib, Mac: true}})
	if err != nil {
		t.Fatal(err)
	}
	if r.WindowTokens != 212992 || r.Binding != profiles.LimitMetal || r.BudgetBytes != 27*gib ||
		r.RestorePoints != 4 || r.KVFormat != profiles.Q8 {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"to 212,992 of 262,144 tokens", "27.0 GiB", "36.0 GiB"} {
		if !strings.Contains(r.Sentence, want) {
			t.Errorf("%q lacks %q", r.Sentence, want)
		}
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "27.9 GiB (30.0 GB)") {
		t.Errorf("notes %q do not say that 30 GB cannot be had", r.Notes)
	}
}

// Only a person who asks for the experimental profile gets it, and its price is said.
func TestExperimentalProfileOnlyWhenAsked(t *testing.T) {
	m := machines[3].m
	models := []profiles.Candidate{model(t, "pocket"), model(t, bareSpeed)}
	asked, err := profiles.Propose(m, models, []profiles.Profile{profile(t, "long")}, nil)
	if err != nil || asked.ProfileID != "long" || !strings.Contains(strings.Join(asked.Reasons, " "), "may be missed") {
		t.Errorf("asked for: %+v, %v", asked, err)
	}
	other, err := profiles.Propose(m, models, []profiles.Profile{profile(t, "long"), profile(t, "balanced")}, nil)
	if err != nil || other.ProfileID != "balanced" {
		t.Errorf("not asked for: %+v, %v", other, err)
	}
}

// The proposal and the plan must show one number: both are sized for the same number of sequences.
func TestProposalIsSizedLikeThePlan(t *testing.T) {
	models := []profiles.Candidate{model(t, bareSpeed)}
	p, err := profiles.ProposeFor(machines[3].m, models, profiles.All(), nil, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := profiles.SizeUpTo(profiles.Input{Model: models[0], Profile: profile(t, "exact"), Machine: machines[3].m,
		Sequences: 3})
	if err != nil || r.Sentence != p.Result.Sentence || r.WindowTokens != p.Result.WindowTokens {
		t.Errorf("proposal %+v\nplan %+v, %v", p.Result, r, err)
	}
}

// The server gives each sequence a whole window: a plan that counted one for all of them would end in a panic of the
// system. And a second sequence must not shorten the first one's window.
func TestEverySequenceHasAWindowOfItsOwn(t *testing.T) {
	taken := map[int]int{}
	for _, m := range machines {
		in := profiles.Input{Model: model(t, bareSpeed), Profile: profile(t, "exact"), Machine: m.m}
		alone, err := profiles.Size(in)
		if err != nil {
			continue // too small for this model
		}
		in.Sequences = 2
		r, err := profiles.SizeUpTo(in)
		if err != nil || r.WindowTokens != alone.WindowTokens || r.RestorePoints != alone.RestorePoints ||
			r.KVFormat != alone.KVFormat {
			t.Errorf("%s: the first window was %+v alone, and is %+v (%v)", m.name, alone, r, err)
			continue
		}
		taken[r.Sequences]++
		full := profiles.Load{Sequences: r.Sequences, RestorePoints: r.RestorePoints,
			Tokens: int64(r.Sequences * r.WindowTokens)}
		if used := r.Costs.ProjectedBytes(full); used != r.UsedBytes || used > r.BudgetBytes {
			t.Errorf("%s: %d full windows take %d, said %d, budget %d", m.name, r.Sequences, used, r.UsedBytes,
				r.BudgetBytes)
		}
		if said := strings.Contains(strings.Join(r.Notes, " "), "one reply at a time"); said != (r.Sequences == 1) {
			t.Errorf("%s: %d sequences, notes %q", m.name, r.Sequences, r.Notes)
		}
	}
	if taken[1] == 0 || taken[2] == 0 {
		t.Errorf("the machines are lopsided: %v", taken)
	}
}

func rank(f profiles.KVFormat) int {
	return slices.Index([]profiles.KVFormat{profiles.Q4, profiles.Q8, profiles.F16, profiles.F32}, f)
}

// Over random machines, budgets and models: never over the budget, whole steps, inside the model's window, and with
// more memory never worse in the order of giving up.
func TestSizingProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 11))
	ids := []string{"pocket", "qwen3.5-4b-4bit", "qwen3.5-9b-4bit", bareSpeed}
	worse := func(a, b profiles.Result) bool { // a is worse than b
		if rank(a.KVFormat) != rank(b.KVFormat) {
			return rank(a.KVFormat) < rank(b.KVFormat)
		}
		if a.RestorePoints != b.RestorePoints {
			return a.RestorePoints < b.RestorePoints
		}
		return a.WindowTokens < b.WindowTokens
	}
	fits, refused := 0, 0
	for range 20000 {
		m := model(t, ids[rng.IntN(len(ids))])
		in := profiles.Input{Model: m, Profile: profiles.All()[rng.IntN(3)], Sequences: 1 + rng.IntN(4)}
		in.Machine.RAMBytes = gib/2 + rng.Int64N(140*gib)
		if rng.IntN(4) > 0 {
			in.Machine.CapBytes = 1 + rng.Int64N(in.Machine.RAMBytes)
		}
		if rng.IntN(3) == 0 {
			in.UserBudgetBytes = 1 + rng.Int64N(40*gib)
		}
		r, err := profiles.Size(in)
		more := in
		switch rng.IntN(3) {
		case 0:
			more.Machine.RAMBytes += rng.Int64N(8 * gib)
		case 1:
			if more.Machine.CapBytes > 0 {
				more.Machine.CapBytes += rng.Int64N(8 * gib)
			}
		case 2:
			more.Machine.RAMBytes += 1
		}
		bigger, biggerErr := profiles.Size(more)
		if err != nil {
			var noFit *profiles.NoFitError
			if !errors.As(err, &noFit) {
				t.Fatalf("%+v: %v", in, err)
			}
			if noFit.NeedBytes <= noFit.BudgetBytes || noFit.Change == "" {
				t.Fatalf("%+v: refused although %d fit in %d (%q)", in, noFit.NeedBytes, noFit.BudgetBytes,
					noFit.Change)
			}
			refused++
			continue
		}
		fits++
		load := profiles.Load{Sequences: in.Sequences, RestorePoints: r.RestorePoints,
			Tokens: int64(r.WindowTokens * in.Sequences)}
		if used := r.Costs.ProjectedBytes(load); used != r.UsedBytes || used > r.BudgetBytes {
			t.Fatalf("%+v: projection %d, said %d, budget %d", in, used, r.UsedBytes, r.BudgetBytes)
		}
		if in.Machine.CapBytes > 0 && r.BudgetBytes > in.Machine.CapBytes || r.BudgetBytes > in.Machine.RAMBytes ||
			in.UserBudgetBytes > 0 && r.BudgetBytes > in.UserBudgetBytes {
			t.Fatalf("%+v: budget %d is over a limit", in, r.BudgetBytes)
		}
		if r.WindowTokens%profiles.WindowStepTokens != 0 || r.WindowTokens < profiles.WindowStepTokens ||
			r.WindowTokens > m.Geometry.MaxPositions {
			t.Fatalf("%+v: window %d", in, r.WindowTokens)
		}
		if biggerErr != nil || worse(bigger, r) {
			t.Fatalf("more memory made it worse: %+v: %+v\n%+v: %+v, %v", in.Machine, r, more.Machine, bigger,
				biggerErr)
		}
		// One number, one rule: the server admits what the plan promised, and not a step more where memory binds.
		others := in.Sequences - 1
		idle := profiles.Load{Sequences: others, RestorePoints: r.RestorePoints, Tokens: int64(r.WindowTokens * others)}
		if err := profiles.Admit(r.Costs, r.BudgetBytes, idle, int64(r.WindowTokens)); err != nil {
			t.Fatalf("%+v: planned window refused: %v", in, err)
		}
		if r.Binding != profiles.LimitModelWindow && r.Binding != profiles.LimitProfileWindow {
			step := profiles.WindowStepTokens * in.Sequences // one step more for each
			err := profiles.Admit(r.Costs, r.BudgetBytes, idle, int64(r.WindowTokens+step))
			var refusal *profiles.RefusedError
			if !errors.As(err, &refusal) || refusal.AllowedTokens < int64(r.WindowTokens) ||
				refusal.AllowedTokens >= int64(r.WindowTokens+step) {
				t.Fatalf("%+v: a step more: %v", in, err)
			}
		}
	}
	if fits < 1000 || refused < 1000 {
		t.Errorf("the cases are lopsided: %d fit, %d refused", fits, refused)
	}
}

// The order of giving up, seen step by step as memory shrinks.
func TestGivingUpGoesWindowThenPointsThenFormat(t *testing.T) {
	var steps []string
	for budget := 28 * gib; budget > 16*gib; budget -= 16 * mib {
		r, err := profiles.Size(profiles.Input{Model: model(t, bareSpeed), Profile: profile(t, "balanced"),
			Machine: profiles.Machine{RAMBytes: 64 * gib, CapBytes: budget}})
		step := "nothing fits"
		if err == nil {
			small := "window"
			if r.WindowTokens < 16384 {
				small = "window below the floor"
			}
			step = fmt.Sprintf("%s %d %s", r.KVFormat, r.RestorePoints, small)
		}
		if len(steps) == 0 || steps[len(steps)-1] != step {
			steps = append(steps, step)
		}
	}
	want := []string{"q8 4 window", "q8 3 window", "q8 2 window", "q8 1 window", "q8 0 window", "q4 1 window",
		"q4 0 window", "q4 0 window below the floor", "nothing fits"}
	if !slices.Equal(steps, want) {
		t.Errorf("got  %q\nwant %q", steps, want)
	}
}

func TestNothingFitsNamesTheSmallestChange(t *testing.T) {
	with := func(id, p string, m profiles.Machine, budget int64) profiles.Input {
		return profiles.Input{Model: model(t, id), Profile: profile(t, p), Machine: m, UserBudgetBytes: budget}
	}
	for _, row := range []struct {
		name string
		in   profiles.Input
		want string
	}{
		{"the asked budget is too small and the machine has more",
			with(bareSpeed, "exact", profiles.Machine{RAMBytes: 64 * gib, CapBytes: 48 * gib}, 10*gib),
			"a budget of at least"},
		{"only the draft is too much",
			with(bareSpeed, "long", profiles.Machine{RAMBytes: 64 * gib, CapBytes: 18*gib + 512*mib}, 0), "no draft"},
		{"only the KV format is too much",
			with(bareSpeed, "exact", profiles.Machine{RAMBytes: 64 * gib, CapBytes: 18*gib + 200*mib}, 0),
			"keys and values in q4 instead of f16"},
		{"the weights are too much",
			with(bareSpeed, "exact", profiles.Machine{RAMBytes: 16 * gib, CapBytes: 10922 * mib}, 0),
			"a smaller model"},
		{"hardly anything is there", with(bareSpeed, "exact", profiles.Machine{RAMBytes: gib, CapBytes: gib / 2}, 0),
			"a much smaller model"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := profiles.Size(row.in)
			var noFit *profiles.NoFitError
			if !errors.As(err, &noFit) {
				t.Fatalf("%v", err)
			}
			if !strings.HasPrefix(noFit.Change, row.want) {
				t.Errorf("change %q, want %q", noFit.Change, row.want)
			}
		})
	}
}

// What is offered beside another server has to fit there when it is asked for by name, and to change as little as
// possible: the window, then the profile, then the model.
func TestSmallerChoiceFitsAndChangesLittle(t *testing.T) {
	models := []profiles.Candidate{model(t, "pocket"), model(t, "qwen3.5-4b-4bit"), model(t, "qwen3.5-9b-4bit"),
		model(t, bareSpeed)}
	for _, row := range []struct {
		left int64
		want string // model and profile
	}{
		{30 * gib, bareSpeed + " exact"},
		{22 * gib, bareSpeed + " balanced"},
		{20 * gib, "qwen3.5-9b-4bit exact"},
		{4 * gib, "qwen3.5-4b-4bit balanced"},
		{3 * gib, ""},
	} {
		in := profiles.Input{Model: model(t, bareSpeed), Profile: profile(t, "exact"), Machine: machines[4].m,
			Sequences: 2, UserBudgetBytes: row.left}
		r, ok := profiles.Smaller(in, models, profiles.All())
		got := ""
		if ok {
			got = r.ModelID + " " + r.ProfileID
		}
		if got != row.want || r.UsedBytes > row.left {
			t.Errorf("beside %d bytes: %q that needs %d with %d tokens, want %q", row.left, got, r.UsedBytes,
				r.WindowTokens, row.want)
		}
		if !ok {
			continue
		}
		in.Model, in.Profile = model(t, r.ModelID), profile(t, r.ProfileID)
		if planned, err := profiles.SizeUpTo(in); err != nil || planned.Sentence != r.Sentence {
			t.Errorf("asked for by name: %q, offered: %q (%v)", planned.Sentence, r.Sentence, err)
		}
	}
}
