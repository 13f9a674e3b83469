package profiles

import (
	"fmt"

	"slipway/units"
)

// RefusedError says that a request would not fit beside what runs. AllowedTokens is what would fit now. The sentence
// is for the client, before any prefill.
type RefusedError struct {
	RequestTokens int64
	AllowedTokens int64
	NeedBytes     int64
	BudgetBytes   int64
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the request needs %s tokens of context (prompt and answer), which takes memory to %s; the "+
		"budget of %s allows %s tokens now",
		grouped(e.RequestTokens), units.GiB(e.NeedBytes), units.GiB(e.BudgetBytes), grouped(e.AllowedTokens))
}

// Admit decides, by the rule that sized the window, whether a request of so many tokens (prompt + largest answer) fits
// beside the active load; active does not count the request. A request that fits the planned window is always
// admitted on an idle server. The error is a *RefusedError.
func Admit(c Costs, budgetBytes int64, active Load, requestTokens int64) error {
	with := Load{Sequences: active.Sequences + 1, RestorePoints: active.RestorePoints, Tokens: active.Tokens +
		requestTokens}
	if need := c.ProjectedBytes(with); need > budgetBytes {
		allowed := max(0, c.TokensWithin(budgetBytes, with)-active.Tokens)
		return &RefusedError{RequestTokens: requestTokens, AllowedTokens: allowed, NeedBytes: need,
			BudgetBytes: budgetBytes}
	}
	return nil
}
