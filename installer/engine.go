package installer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"slipway/installer/apply"
	"slipway/installer/build"
	"slipway/installer/plan"
	"slipway/manifests"
)

func sha(data []byte) [32]byte { return sha256.Sum256(data) }

type foundEngine struct {
	engine    plan.Engine
	source    *build.Source
	toolchain *build.Toolchain
	prebuilt  string
	problem   string // why there is no way to get one
	untrusted string // the prebuilt one is not the one that this program trusts
}

// findEngine decides where the server program comes from: built from the source available; else the prebuilt one beside
// this program, when its digest is the one that was compiled in; else the one that is set up already.
func findEngine(ctx context.Context, in Input, at Environment, k known) foundEngine {
	var f foundEngine
	if in.KeepEngine && keepEngine(&f, k) {
		return f
	}
	target := runtime.GOOS + "/" + runtime.GOARCH
	source, err := build.FindSource(in.Source, at.RecordedSource, at.WorkingDir)
	if err == nil {
		var tools build.Toolchain
		if tools, err = build.FindGo(ctx, at.ToolPath, source.GoVersion); err == nil {
			f.source, f.toolchain = &source, &tools
			f.engine = plan.Engine{Origin: plan.FromSource, Source: source.Digest, GoVersion: tools.Version,
				ID: build.EngineID(source.Digest, tools.Version, target)}
			return f
		}
	}
	if in.Source == "" && at.PrebuiltDigest != "" {
		prebuilt := filepath.Join(filepath.Dir(at.Executable), plan.EngineBinary)
		found, _, hashErr := build.HashFile(prebuilt)
		if hashErr == nil && found == at.PrebuiltDigest {
			f.prebuilt = prebuilt
			f.engine = plan.Engine{Origin: plan.Prebuilt, Prebuilt: found, ID: found.Hex()[:16]}
			return f
		}
		if hashErr == nil {
			f.untrusted = (&apply.PrebuiltError{Path: prebuilt, Want: at.PrebuiltDigest, Found: found}).Error() + "."
			f.engine = plan.Engine{ID: "none"}
			return f
		}
	}
	if in.Source == "" && keepEngine(&f, k) {
		return f
	}
	f.problem, f.engine = engineSentence(err), plan.Engine{ID: "none"}
	return f
}

// keepEngine takes the engine of the settings, if its program is whole.
func keepEngine(f *foundEngine, k known) bool {
	if k.home == nil || k.settings == nil {
		return false
	}
	e := k.settings.Decisions.Engine
	if _, err := apply.EngineOf(k.home, e.ID); err != nil {
		return false
	}
	f.engine = e
	return true
}

func engineSentence(err error) string {
	var old *build.OldGoError
	switch {
	case errors.As(err, &old):
		return fmt.Sprintf("The server cannot be built: %s. There is no prebuilt slipway-server beside this program "+
			"that it trusts.", old.Error())
	case errors.Is(err, build.ErrNoGo):
		return "The server cannot be built: there is no Go toolchain on this machine, and no prebuilt " +
			"slipway-server beside this program that it trusts."
	case errors.Is(err, build.ErrNoSource):
		return fmt.Sprintf("The server cannot be built: %v, and there is no prebuilt slipway-server beside this "+
			"program that it trusts. Name the source with --source, or run slipway in its repository.", err)
	}
	return fmt.Sprintf("The server cannot be built: %v.", err)
}

// Digest reads the digest that was compiled in; what is no digest counts as none.
func Digest(compiledIn string) manifests.Digest {
	d := manifests.Digest(compiledIn)
	if d.Validate() != nil {
		return ""
	}
	return d
}
