package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"slipway/fault"
	"slipway/termtext"
	"slipway/wire"
)

// CacheError: the server's cache verb did not do it. Refused: the folder is not as it should be; Why says how.
type CacheError struct {
	Why     string
	Refused bool
}

func (e *CacheError) Error() string { return e.Why }

// Fault is stale where the folder is not as it should be.
func (e *CacheError) Fault() fault.Fault {
	if e.Refused {
		return fault.Fault{Class: fault.Stale, Step: fault.CleanCache}
	}
	return fault.Fault{Class: fault.Internal, Step: fault.RunDoctor}
}

// cacheLimit is how long a cache verb may take: to delete 64 GiB in files of some 100 kB is minutes on a slow disk.
const cacheLimit = 10 * time.Minute

// ShowCache asks a server program what a folder holds. Errors: *CacheError.
func ShowCache(ctx context.Context, program, folder string) (wire.CacheContents, error) {
	var c wire.CacheContents
	out, err := cacheVerb(ctx, program, "show", folder)
	if err == nil {
		if err = json.Unmarshal(out, &c); err != nil {
			err = &CacheError{Why: fmt.Sprintf("slipway-server cache show: %v", err)}
		}
	}
	return c, err
}

// ClearCache has a server program delete what a folder holds. Errors: *CacheError.
func ClearCache(ctx context.Context, program, folder string) error {
	_, err := cacheVerb(ctx, program, "clear", folder)
	return err
}

func cacheVerb(ctx context.Context, program, verb, folder string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cacheLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "cache", verb, "--cache-disk", folder)
	var said bytes.Buffer
	cmd.Env, cmd.Stderr, cmd.WaitDelay = environment(), &said, time.Second
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	why := termtext.Line(strings.TrimSpace(said.String()))
	if why == "" {
		why = "slipway-server cache " + verb + ": " + err.Error()
	}
	var ended *exec.ExitError
	return nil, &CacheError{Why: why, Refused: errors.As(err, &ended) && ended.ExitCode() == refusedCode}
}

// refusedCode is the server's exit code for what cannot be honoured.
const refusedCode = 2
