package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Live is what a server of ours tells of itself to those who watch: the answers of GET /slipway/requests and
// /slipway/system, of which the names are those of the HTTP API.
type Live struct {
	Server struct {
		Ready    bool   `json:"ready"`
		Active   int    `json:"active"`
		Queued   int    `json:"queued"`
		Draining bool   `json:"draining"`
		KVFormat string `json:"kv_format"` // empty: not told
	} `json:"server"`
	Cache    *LiveCache    `json:"cache"` // nil: nothing is kept between requests
	Requests []LiveRequest `json:"requests"`
	Memory   *LiveMemory   `json:"memory"`
	Machine  *LiveMachine  `json:"machine"`
	Launch   *Told         `json:"launch"`
	Totals   LiveTotals    `json:"totals"` // of requests that have ended
}

// LiveTier is where restore points are held.
type LiveTier struct {
	Points      int   `json:"points"`
	Bytes       int64 `json:"bytes"`
	BudgetBytes int64 `json:"budget_bytes"`
}

// LiveCache is what is kept between requests. Disk nil: nothing there.
type LiveCache struct {
	Memory LiveTier  `json:"memory"`
	Disk   *LiveTier `json:"disk"`
}

// LiveMemory is what the model holds, pools counted full.
type LiveMemory struct {
	Loaded            bool  `json:"loaded"`
	WeightsBytes      int64 `json:"weights_bytes"`
	ContextBytes      int64 `json:"context_bytes"`
	WorkBytes         int64 `json:"work_bytes"`
	PointsBudgetBytes int64 `json:"points_budget_bytes"`
}

// LiveMachine is the machine's state; nil and empty where it was not told.
type LiveMachine struct {
	RAMBytes       *int64 `json:"ram_bytes"`
	AvailableBytes *int64 `json:"available_bytes"`
	SwapUsedBytes  *int64 `json:"swap_used_bytes"`
	OwnBytes       *int64 `json:"own_bytes"`
	Pressure       string `json:"pressure"`
}

// LiveTotals count requests that have ended. PromptTokens is CachedTokens + ComputedTokens.
type LiveTotals struct {
	Requests         map[string]int `json:"requests"` // by how they ended
	PromptTokens     int            `json:"prompt_tokens"`
	CachedTokens     int            `json:"cached_tokens"`
	ComputedTokens   int            `json:"computed_tokens"`
	CompletionTokens int            `json:"completion_tokens"`
}

// LiveRequest is a request under way, or one of the latest that have ended. PromptTokens is CachedTokens + ComputedTokens.
type LiveRequest struct {
	ID             string    `json:"id"`
	Phase          string    `json:"phase"`
	Started        time.Time `json:"started"`
	PrefillPolicy  string    `json:"prefill_policy"`
	PromptTokens   int       `json:"prompt_tokens"`
	CachedTokens   int       `json:"cached_tokens"`
	ComputedTokens int       `json:"computed_tokens"`
	Prefill        struct {
		DoneTokens int `json:"done_tokens"`
		OfTokens   int `json:"of_tokens"`
	} `json:"prefill"`
	CompletionTokens  int      `json:"completion_tokens"`
	MaxTokens         int      `json:"max_tokens"`
	FinishReason      *string  `json:"finish_reason"`
	QueueMs           float64  `json:"queue_ms"`
	PrefillMs         float64  `json:"prefill_ms"`
	DecodeMs          float64  `json:"decode_ms"`
	FirstTokenMs      *float64 `json:"first_token_ms"`
	PrefillTokensPerS *float64 `json:"prefill_tokens_per_s"`
	PrefillLeftMs     *float64 `json:"prefill_left_ms"`
	DecodeTokensPerS  *float64 `json:"decode_tokens_per_s"`
	Draft             *struct {
		Drafted  int `json:"drafted"`
		Accepted int `json:"accepted"`
	} `json:"draft,omitempty"`
	Recomputed *struct {
		KnownTokens int    `json:"known_tokens"`
		AgainTokens int    `json:"again_tokens"`
		Because     string `json:"because"`
	} `json:"recomputed"`
}

// Ended tells whether nothing of the request will change any more.
func (r LiveRequest) Ended() bool {
	return r.Phase == "done" || r.Phase == "cancelled" || r.Phase == "failed"
}

// mostLiveBytes bounds an answer: 64 requests of 1 KB and an hour's history, with room to spare.
const mostLiveBytes = 4 << 20

// AskLive asks our server on the port.
func AskLive(ctx context.Context, port int) (Live, error) {
	var l Live
	for _, path := range []string{"/slipway/requests", "/slipway/system"} {
		if err := askJSON(ctx, URL(port)+path, &l); err != nil {
			return Live{}, err
		}
	}
	return l, nil
}

func askJSON(ctx context.Context, address string, to any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := local.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, response.Status)
	}
	return json.NewDecoder(io.LimitReader(response.Body, mostLiveBytes)).Decode(to)
}
