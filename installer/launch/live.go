package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"slipway/wire"
)

// Live is what a running server of ours says of itself: of [wire.Watching] and [wire.System] what people look at.
type Live struct {
	Server   wire.WatchedServer    `json:"server"`
	Cache    *wire.WatchedCache    `json:"cache"` // nil: nothing is kept between requests
	Requests []wire.WatchedRequest `json:"requests"`
	Memory   *wire.Memory          `json:"memory"`
	Machine  *wire.Machine         `json:"machine"`
	Launch   *wire.Launch          `json:"launch"`
	Totals   wire.Totals           `json:"totals"` // of requests that have ended
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
	for _, r := range l.Requests {
		if r.Recomputed != nil {
			r.Recomputed.Snippet = nil // texts of prompts are for the monitor's page alone
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
