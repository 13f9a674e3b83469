package profiles

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/units"
)

// Input is everything that sizing depends on. UserBudgetBytes 0: none was asked for. Sequences is how many are
// answered at once, 0 means 1; each has a whole window of its own, as the server keeps it. Capabilities nil: the server
// is not known yet.
type Input struct {
	Model           Candidate
	Profile         Profile
	Machine         Machine
	UserBudgetBytes int64
	Sequences       int
	Capabilities    *Capabilities
}

// Result is the settings that fit. WindowTokens is a multiple of WindowStepTokens, and what each of the Sequences may
// hold. UsedBytes is the projection with all windows full, never above BudgetBytes. Sentence names
// the limit that binds and every reduction, and Short says it in a line; Reductions are the same as clauses, in the
// order in which they were made; Notes are sentences about what was asked for and is not available.
type Result struct {
	ModelID       string      `json:"model"`
	ProfileID     string      `json:"profile"`
	WindowTokens  int         `json:"window_tokens"`
	KVFormat      KVFormat    `json:"kv_format"`
	RestorePoints int         `json:"restore_points"`
	Draft         DraftChoice `json:"draft"`
	Sequences     int         `json:"sequences"`
	BudgetBytes   int64       `json:"budget_bytes"`
	UsedBytes     int64       `json:"used_bytes"`
	Binding       Limit       `json:"binding"`
	Sentence      string      `json:"sentence"`
	Short         string      `json:"short"`
	Reductions    []string    `json:"gave_up"`
	Notes         []string    `json:"notes"`
	Costs         Costs       `json:"costs"`
}

// NoFitError says that not even the smallest window fits. Change is the smallest change that would, as a clause.
type NoFitError struct {
	ModelID     string
	NeedBytes   int64 // for the smallest window, with every reduction that the profile allows
	BudgetBytes int64
	Limit       Limit
	Change      string
	sentence    string
}

func (e *NoFitError) Error() string { return e.sentence }

// Size fits a model and a profile into a machine. It reduces in this order: the window down to the profile's floor,
// then restore points one by one, then the KV format where the profile allows it, then the window below the floor. With
// more memory the triple (KV format, restore points, window) never gets worse, and the projection never exceeds the
// budget. Errors: *NoFitError, or what is wrong with the input.
func Size(in Input) (Result, error) {
	if err := in.check(); err != nil {
		return Result{}, err
	}
	sequences := max(in.Sequences, 1)
	money := in.Machine.budget(in.Profile.Memory.BudgetBytes, in.UserBudgetBytes)
	draft, draftGone := in.draft()
	formats, widened := in.formats()
	wanted, wantedLimit := in.wantedWindow()
	floor := min(in.Profile.Window.FloorTokens, wanted)

	chosen, found := option{}, false
	var last option
	for _, format := range formats {
		costs := CostsOf(in.Model.Geometry, in.Model.DFlash2, format, draft, in.Profile.Prefill.ChunkTokens)
		for points := in.Profile.Memory.RestorePoints; points >= 0 && !found; points-- {
			last = option{format: format, points: points, costs: costs}
			last.room = costs.TokensWithin(money.Bytes, Load{Sequences: sequences, RestorePoints: points}) / int64(
				sequences)
			last.window = min(floorTokens(last.room), wanted)
			if last.window >= floor {
				chosen, found = last, true
			}
		}
	}
	if !found {
		chosen = last // every reduction is made: a window below the floor may still fit
	}
	if chosen.window < WindowStepTokens {
		return Result{}, in.noFit(money, draft, chosen.costs, sequences)
	}

	r := Result{
		ModelID: in.Model.ID, ProfileID: in.Profile.ID, WindowTokens: chosen.window, KVFormat: chosen.format,
		RestorePoints: chosen.points, Draft: draft, Sequences: sequences, BudgetBytes: money.Bytes,
		Binding: money.Limit, Costs: chosen.costs, Reductions: []string{}, Notes: append([]string{}, money.notes...),
	}
	r.UsedBytes = r.Costs.ProjectedBytes(Load{Sequences: sequences, RestorePoints: chosen.points,
		Tokens: int64(chosen.window) * int64(sequences)})
	if chosen.window == wanted {
		r.Binding = wantedLimit
	}
	lead := fmt.Sprintf("Context: %s tokens (the profile's choice)", grouped(wanted))
	switch {
	case chosen.window < wanted:
		lead = fmt.Sprintf("Context reduced to %s of %s tokens", grouped(chosen.window), grouped(wanted))
	case wantedLimit == LimitModelWindow:
		lead = fmt.Sprintf("Context: %s tokens (the model's maximum)", grouped(wanted))
	}
	clauses := []string{lead}
	if chosen.window < wanted {
		r.Reductions = append(r.Reductions, fmt.Sprintf("context %s instead of %s tokens", grouped(chosen.window),
			grouped(wanted)))
	}
	if chosen.points < in.Profile.Memory.RestorePoints {
		r.Reductions = append(r.Reductions, fmt.Sprintf("%s instead of %d", points(chosen.points),
			in.Profile.Memory.RestorePoints))
	}
	if chosen.format != formats[0] {
		r.Reductions = append(r.Reductions, fmt.Sprintf("keys and values in %s instead of %s", chosen.format,
			formats[0]))
	}
	if draftGone != "" {
		r.Reductions = append(r.Reductions, draftGone)
	}
	for _, reduction := range r.Reductions {
		if !strings.HasPrefix(reduction, "context ") { // the lead says that
			clauses = append(clauses, reduction)
		}
	}
	r.Short = strings.Join(clauses, ", ") + "."
	if chosen.window < wanted {
		why := fmt.Sprintf("%s (%s)", lead, shortLimits[money.Limit])
		r.Short = strings.Join(append([]string{why}, clauses[1:]...), ", ") + "."
	}
	takes := "with a full context the model takes"
	if sequences > 1 {
		takes = fmt.Sprintf("with %d replies at once, each with a full context, the model takes", sequences)
	}
	r.Sentence = fmt.Sprintf("%s. %s; %s %s.", strings.Join(clauses, ", "),
		capital(in.Machine.phrase(money.Limit, money.Bytes)), takes, units.GiB(r.UsedBytes))
	if widened != "" {
		r.Notes = append(r.Notes, widened)
	}
	return r, nil
}

// SizeUpTo is Size for as many sequences, at most in.Sequences, as cost the first one nothing: one long window is worth
// more than two short ones. Where it is fewer a note says so. Errors: those of Size for one sequence.
func SizeUpTo(in Input) (Result, error) {
	most := in.Sequences
	in.Sequences = 1
	alone, err := Size(in)
	if err != nil {
		return Result{}, err
	}
	for n := most; n > 1; n-- {
		in.Sequences = n
		r, err := Size(in)
		if err == nil && r.WindowTokens == alone.WindowTokens && r.RestorePoints == alone.RestorePoints &&
			r.KVFormat == alone.KVFormat {
			if n < most {
				r.Notes = append(r.Notes, fmt.Sprintf("%d replies at once and not %d: another full context "+
					"does not fit", n, most))
			}
			return r, nil
		}
	}
	if most > 1 {
		alone.Notes = append(alone.Notes, "one reply at a time: a second full context does not fit")
	}
	return alone, nil
}

// shortLimits are the limits on memory in one or two words.
var shortLimits = map[Limit]string{LimitMetal: "memory", LimitRAM: "memory", LimitUserBudget: "the --memory budget",
	LimitProfileBudget: "the profile's budget"}

// option is one step of the reductions. room is how many tokens fit, before the bound of the model's own window.
type option struct {
	format KVFormat
	points int
	costs  Costs
	room   int64
	window int
}

func (in Input) check() error {
	if err := in.Model.Geometry.Validate(); err != nil {
		return fmt.Errorf("model %s: %w", in.Model.ID, err)
	}
	if in.Model.DFlash2 != nil {
		if err := in.Model.DFlash2.Validate(); err != nil {
			return fmt.Errorf("model %s: %w", in.Model.ID, err)
		}
	}
	if key, why := in.Profile.fault(); why != "" {
		return fmt.Errorf("profile %s: %s %s", in.Profile.ID, key, why)
	}
	switch {
	case in.Machine.RAMBytes <= 0 || in.Machine.RAMBytes > 1<<50:
		return errors.New("the machine's memory is not known, so nothing can be sized")
	case in.Machine.CapBytes < 0 || in.UserBudgetBytes < 0 || in.Sequences < 0 || in.Sequences > 1024:
		return errors.New("a working set, a budget or a number of sequences is out of range")
	}
	if in.Capabilities != nil {
		if missing := in.Profile.Unhonoured(*in.Capabilities); len(missing) > 0 {
			return errors.New(strings.Join(missing, "; "))
		}
	}
	return nil
}

// draft is the profile's draft where model and server have one; the sentence says why not.
func (in Input) draft() (DraftChoice, string) {
	want := in.Profile.Draft
	switch d, _ := DraftOf(want.Kind); {
	case !d.has(in.Model):
		return DraftChoice{Kind: NoDraft}, fmt.Sprintf("no draft (%s)", d.lacking)
	case want.Kind != NoDraft && in.Capabilities != nil && !slices.Contains(in.Capabilities.Drafts, string(want.Kind)):
		return DraftChoice{Kind: NoDraft}, fmt.Sprintf("no draft (this server has no %s; only speed is lost)",
			want.Kind)
	}
	return want, ""
}

// formats are the KV formats that may be used, best first: the wanted one and its fallbacks, each replaced by the next
// wider one that the server has.
func (in Input) formats() (formats []KVFormat, widened string) {
	for i, f := range append([]KVFormat{in.Profile.KV.Format}, in.Profile.KV.Fallback...) {
		have, ok := in.Profile.formatOn(f, in.Capabilities)
		if !ok || len(formats) > 0 && formats[len(formats)-1] == have {
			continue
		}
		if i == 0 && have != f {
			widened = fmt.Sprintf("keys and values are stored as %s: this server has no %s, and the wider format "+
				"loses nothing", have, f)
		}
		formats = append(formats, have)
	}
	return formats, widened
}

// wantedWindow is the profile's window, at most the model's own, in full steps.
func (in Input) wantedWindow() (int, Limit) {
	model := floorTokens(int64(in.Model.Geometry.MaxPositions))
	profile := floorTokens(int64(in.Profile.Window.WantTokens))
	if model <= profile {
		return model, LimitModelWindow
	}
	return profile, LimitProfileWindow
}

// noFit finds the smallest change that would make the smallest window fit. Tried in this order: a larger budget where a
// budget binds and the machine has more; no draft; a narrower KV format; both; a smaller model.
func (in Input) noFit(money budget, draft DraftChoice, costs Costs, sequences int) error {
	smallest := Load{Sequences: sequences, Tokens: WindowStepTokens * int64(sequences)}
	need := costs.ProjectedBytes(smallest)
	e := &NoFitError{ModelID: in.Model.ID, NeedBytes: need, BudgetBytes: money.Bytes, Limit: money.Limit}
	machine := in.Machine.budget(0, 0)
	narrower := in.narrowestOffered()
	priced := func(f KVFormat, d DraftChoice) int64 {
		return CostsOf(in.Model.Geometry, in.Model.DFlash2, f, d, in.Profile.Prefill.ChunkTokens).ProjectedBytes(
			smallest)
	}
	last, _ := in.formats()
	format := last[len(last)-1]
	none := DraftChoice{Kind: NoDraft}
	switch {
	case money.Bytes < machine.Bytes && need <= machine.Bytes:
		e.Change = fmt.Sprintf("a budget of at least %s", units.GiB(roundUp(need, 64*mib)))
	case draft.Kind != NoDraft && priced(format, none) <= money.Bytes:
		e.Change = "no draft"
	case narrower != format && priced(narrower, draft) <= money.Bytes:
		e.Change = fmt.Sprintf("keys and values in %s instead of %s", narrower, format)
	case draft.Kind != NoDraft && narrower != format && priced(narrower, none) <= money.Bytes:
		e.Change = fmt.Sprintf("no draft, and keys and values in %s instead of %s", narrower, format)
	default:
		room := money.Bytes - (need - costs.WeightsBytes)
		if room <= 0 {
			e.Change = "a much smaller model"
		} else {
			e.Change = fmt.Sprintf("a smaller model, with at most about %s of weights", units.GiB(room))
		}
	}
	e.sentence = fmt.Sprintf("%s does not fit: %s tokens of context need %s, and %s. The smallest change that "+
		"would fit: %s.",
		in.Model.Title, grouped(WindowStepTokens), units.GiB(need), in.Machine.phrase(money.Limit, money.Bytes),
		e.Change)
	return e
}

// narrowestOffered is the narrowest KV format of the server, whatever the profile allows.
func (in Input) narrowestOffered() KVFormat {
	format := kvFormats[len(kvFormats)-1]
	have, _ := in.Profile.formatOn(format, in.Capabilities)
	return have
}

func points(n int) string {
	switch n {
	case 0:
		return "no restore points"
	case 1:
		return "1 restore point"
	}
	return fmt.Sprintf("%d restore points", n)
}
