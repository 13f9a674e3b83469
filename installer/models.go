package installer

import (
	"context"

	"slipway/installer/apply"
	"slipway/installer/machine"
	"slipway/manifests"
	"slipway/profiles"
)

// ModelRow is one model on this machine.
type ModelRow struct {
	ID       string             `json:"id"`
	Title    string             `json:"title"`
	Repo     string             `json:"repo"`
	Revision manifests.Revision `json:"revision"`
	License  string             `json:"license"`
	Bytes    int64              `json:"bytes"`    // of the download, about; 0 for an embedded model
	Locked   bool               `json:"locked"`   // every hash is known
	Fits     bool               `json:"fits"`     // with the first profile that can be offered
	Sentence string             `json:"sentence"` // how it fits or why not
	Short    string             `json:"short"`    // the same in a line

	// TokensPerSecond is an estimate for this processor; 0 where the GPU would answer, or the model does not fit.
	TokensPerSecond float64 `json:"estimated_tokens_per_second"`
}

// Models looks at every model on this machine. It writes nothing.
func Models(ctx context.Context, homePath string, at Environment) ([]ModelRow, error) {
	home, err := apply.ResolveHome(homePath, at.UserHome)
	if err != nil {
		return nil, err
	}
	k := lookHome(home, at)
	defer k.close()
	facts := machine.Observe(ctx, at.Sources, machine.Subject{Home: home, Program: at.Executable})
	engineID := ""
	if k.settings != nil {
		engineID = k.settings.Decisions.Engine.ID
	}
	can := serverCan(ctx, at, k, engineID)
	rows := []ModelRow{}
	for _, m := range k.manifests() {
		row := ModelRow{ID: m.ID, Title: m.Title, Repo: m.Repo, Revision: m.Revision, License: m.License.SPDX,
			Bytes: m.DownloadBytes}
		_, row.Locked = lockOf(m, k)
		c := choice{manifest: m, profile: profiles.All()[0]}
		host := facts.Sizing()
		device := "metal"
		if host.CapBytes == 0 {
			device = "cpu"
		}
		c.size(host, device, can.Value, 0)
		row.Fits, row.Sentence = c.notFit == "", c.sized.Sentence
		switch {
		case c.result == nil:
			row.Sentence, row.Short = c.notFit, "Does not fit: "+needs(c)+"."
		default:
			row.Short = c.result.Short
			if device == "cpu" && !m.Embedded {
				row.TokensPerSecond = cpuTokensPerSecond(m)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
