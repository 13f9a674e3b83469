package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/build"
	"slipway/installer/consent"
	"slipway/installer/hub"
	"slipway/installer/launch"
	"slipway/installer/pin"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
)

// Exit codes. docs/exit-codes.md explains each; a test holds the page against this table.
const (
	exitOK       = 0
	exitInternal = 1
	exitUsage    = 2
	exitNotReady = 3
	exitAuth     = 4
	exitConsent  = 5
	exitStale    = 6
	exitNetwork  = 7
	exitTimeout  = 8
	exitHuman    = 9 // a person must do something
	exitDamage   = 10
	exitNoSpace  = 11
	exitLocked   = 12
	exitRefused  = 13 // a port or a process
	exitBuild    = 14
	exitChanges  = 20 // changes pending, or drift

	exitCheckFailed = 21 // a server that was measured or checked is at fault
)

// codeNames are the words of the JSON documents.
var codeNames = map[int]string{
	exitOK: "ok", exitInternal: "internal", exitUsage: "usage", exitNotReady: "not-ready", exitAuth: "auth",
	exitConsent: "consent-required", exitStale: "stale", exitNetwork: "network", exitTimeout: "timeout",
	exitHuman: "human-action-needed", exitDamage: "integrity", exitNoSpace: "no-space", exitLocked: "locked",
	exitRefused: "port-or-process-refused", exitBuild: "build-failed", exitChanges: "changes-pending", exitCheckFailed: "check-failed",
	exitHangup: "hangup", exitInterrupt: "interrupted", exitTerminated: "terminated",
}

// failure is a verb's error with its final words. Next is the argv of the next step without this program's name; nil
// when a person must act first.
type failure struct {
	code    int
	what    string // what happened and why, a sentence
	then    string // what next, a sentence
	next    []string
	details any
}

func (f *failure) Error() string { return strings.TrimSpace(f.what + " " + f.then) }

// explain gives any error its code and words, in one place.
func explain(err error) *failure {
	var (
		f        *failure
		stopped  *stopError
		choice   *installer.ChoiceError
		home     *apply.HomeError
		journal  *apply.JournalError
		settings *apply.SettingsError
		locked   *apply.LockedError
		stale    *apply.StaleError
		needed   *consent.NeededError
		file     *plan.ErrFile
		port     *launch.PortError
		crash    *launch.CrashError
		slow     *launch.SlowError
		unfit    *launch.UnfitError
		cache    *launch.CacheError
		failed   *build.FailedError
		oldGo    *build.OldGoError
		prebuilt *apply.PrebuiltError
		damage   *store.IntegrityError
		space    *store.NoSpaceError
		busy     *store.BusyError
		foreign  *store.ForeignError
		refused  *serverError
		network  *hub.NetworkError
		limited  *hub.LimitedError
		notAHub  *hub.NotAHubError
		access   *hub.AccessError
		upstream *hub.UpstreamDiffersError
		wrong    *hub.WrongBytesError
		hostile  *hub.HostileError
		large    *hub.TooLargeError
		conflict *store.LockConflictError
		moved    *store.MovedError
		filling  *store.PullInProgressError
		address  *hub.AddressError
		proxy    *hub.ProxyError
		redirect *hub.RedirectError
		unusable *pin.UnusableError
		badLock  *manifests.LockError
		told     *pin.ToldError
		proof    *pin.ProofError
		forged   *pin.CollisionError
		against  *pin.ContradictionError
	)
	say := func(code int, what, then string, next ...string) *failure {
		return &failure{code: code, what: sentence(what), then: then, next: next}
	}
	if f := explainNeighbor(err); f != nil {
		return f
	}
	if f := explainFault(err); f != nil {
		return f
	}
	if f := explainRecord(err); f != nil {
		return f
	}
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &stopped):
		return say(stopped.code, stopped.Error(), "")
	case errors.Is(err, consent.ErrInterrupted):
		return say(exitInterrupt, "Stopped at the question", "Nothing was done.")
	case errors.As(err, &choice):
		return say(exitUsage, choice.Why, "")
	case errors.As(err, &needed):
		return say(exitConsent, needed.Error(), "Nothing was done.")
	case errors.As(err, &locked):
		return say(exitLocked, locked.Error(), "Wait for it to end, then run the same command again.", "status")
	case errors.As(err, &journal):
		return say(exitDamage, journal.Error(), "Nothing was done. The files themselves are checked by their hashes, so setting the journal aside loses nothing: add --set-aside-journal.",
			"setup", "--set-aside-journal")
	case errors.As(err, &settings):
		return say(exitDamage, settings.Error(), "Set-up chooses again, writes them, and sets the damaged file aside: slipway setup.", "setup")
	case errors.As(err, &port) && port.Monitor:
		return say(exitRefused, port.Error(), "Choose another port for the monitor with --monitor-port, or stop that program yourself; slipway never moves to another port by itself.")
	case errors.As(err, &port):
		if port.Use.Home != "" {
			return say(exitRefused, port.Error(), "Choose another port with --port, or stop that server.", "down", "--home", port.Use.Home)
		}
		return say(exitRefused, port.Error(), "Choose another port with --port, or stop that program yourself; slipway never moves to another port by itself.")
	case errors.As(err, &home) && home.Conflict:
		return say(exitStale, home.Error(), "Nothing was done. Move it away and run the same command again; slipway does not overwrite what it did not make.")
	case errors.As(err, &home):
		return say(exitHuman, home.Error(), "Nothing was done. Choose another folder with --home.")
	case errors.As(err, &file):
		return say(exitStale, file.Error(), "Nothing was done. Make the plan again: slipway plan --out FILE.")
	case errors.As(err, &stale):
		return say(exitStale, stale.Error(), "Look at what is there and make the plan again.", "setup", "--dry-run")
	case errors.As(err, &space), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return say(exitNoSpace, "There is no space left on the volume of the home: "+err.Error(), "What is whole is kept. Free some space and run the same command again.")
	case errors.As(err, &access):
		return say(accessCode(access.Kind), access.Error(), "What arrived is kept. Then run the same command again.")
	case errors.As(err, &notAHub), errors.Is(err, hub.ErrOffline):
		return say(exitNetwork, err.Error(), "Look at HF_ENDPOINT and HF_HUB_OFFLINE, then run the same command again.")
	case errors.As(err, &network), errors.As(err, &limited):
		return say(exitNetwork, err.Error(), "What arrived is kept. Run the same command again to go on.")
	case errors.As(err, &upstream), errors.As(err, &conflict):
		return say(exitStale, err.Error(), "A revision never changes, so one of them is wrong. Lock the model again and put the new lock in the place of the old one.", "models", "lock", "--replace")
	case errors.As(err, &address):
		return say(exitUsage, address.Error(), "Nothing was asked. Set it right or unset it.")
	case errors.As(err, &proxy):
		return say(exitUsage, proxy.Error(), "Nothing was asked. Set it right or unset it.")
	case errors.As(err, &redirect):
		return say(exitDamage, redirect.Error(), "Nothing was taken from there. Look at HF_ENDPOINT and the proxy settings, or try from another network.")
	case errors.As(err, &unusable):
		return say(exitDamage, unusable.Error(), "Nothing was locked. Its makers must mend that in another revision; choose another model.", "models", "list")
	case errors.As(err, &moved):
		return say(exitChanges, moved.Error(), "The model is used where it lies, and that folder must stay as it is. Set it up again: slipway setup.", "setup")
	case errors.As(err, &filling):
		return say(exitLocked, filling.Error(), "Wait for it to end, then run the same command again.")
	case errors.As(err, &wrong), errors.As(err, &hostile):
		return say(exitDamage, err.Error(), "Nothing wrong stands under a final name. Try later or from another mirror (HF_ENDPOINT).")
	case errors.As(err, &told) && told.Mirror:
		return say(exitHuman, told.Error(), "Nothing was done. Unset HF_ENDPOINT and lock the model from the hub itself.")
	case errors.As(err, &told):
		return say(exitConsent, told.Error(), "Nothing was done.")
	case errors.As(err, &proof), errors.As(err, &forged), errors.As(err, &against):
		return say(exitDamage, err.Error(), "Nothing was locked. Somebody between the model's makers and you serves other bytes; try from another network.")
	case errors.As(err, &large):
		return say(exitHuman, large.Error(), "Fetch that file with the hub's own tools, or choose another model.")
	case errors.As(err, &busy):
		return say(exitLocked, busy.Error(), "Wait for it to end, then run the same command again.")
	case errors.As(err, &foreign):
		return say(exitStale, foreign.Error(), "Move it away and run the same command again; slipway does not overwrite what it did not make.")
	case errors.As(err, &damage):
		return say(exitDamage, damage.Error(), "Nothing wrong stands under a final name. Run the same command again.")
	case errors.As(err, &prebuilt):
		return say(exitDamage, prebuilt.Error(), "Fetch the release again.")
	case errors.As(err, &oldGo), errors.Is(err, build.ErrNoGo), errors.Is(err, build.ErrNoSource):
		return say(exitHuman, "The server cannot be built: "+err.Error(), "Install Go 1.26 or newer (https://go.dev/dl/) and run slipway in its source.")
	case errors.As(err, &failed):
		return say(exitBuild, failed.Error(), "The rest is kept. Mend the source or the toolchain and run the same command again.")
	case errors.As(err, &crash):
		return say(exitNotReady, crash.Error(), "The whole log: slipway logs.", "logs")
	case errors.As(err, &slow):
		return say(exitTimeout, slow.Error(), "The whole log: slipway logs.", "logs")
	case errors.Is(err, launch.ErrUnknownServer):
		return say(exitLocked, err.Error(), "Nothing was stopped or removed. A server that is being started is known in a moment: try again. If it stays so, look who has that file open, end it yourself, and run the same command again.", "status")
	case errors.As(err, &unfit):
		return say(exitNotReady, unfit.Why, "Choose another profile or model.", "models", "list")
	case errors.As(err, &cache) && cache.Refused:
		return say(exitStale, cache.Why, "Nothing was deleted. Look what is in the cache folder of the home, and move away what slipway did not put there.")
	case errors.As(err, &refused):
		return say(refused.code(), refused.Error(), refused.then())
	case errors.Is(err, apply.ErrNoHome):
		return say(exitNotReady, err.Error(), "Set it up first: slipway setup.", "setup")
	case errors.Is(err, apply.ErrNoLock):
		return say(exitHuman, err.Error(), "Lock it first: slipway models lock.", "models", "lock")
	case errors.As(err, &badLock):
		return say(exitDamage, badLock.Error(), "Lock the model again and put the new lock in the place of the old one.", "models", "lock", "--replace")
	case inTheWay(err) != "":
		return say(exitStale, "Something that slipway did not put there stands in the way: "+inTheWay(err), "Move it away and run the same command again; slipway does not overwrite what it did not make.")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return say(exitHuman, "The system does not allow it: "+err.Error(), "Choose another folder with --home, or mend its permissions.")
	case errors.Is(err, context.DeadlineExceeded):
		return say(exitTimeout, err.Error(), "Run the same command again.")
	}
	return say(exitInternal, err.Error(), "This is a fault of slipway or of the system; slipway doctor may tell more.", "doctor")
}

// inTheWay names the path below the home at which a link that leads out, a folder or a file of another kind stands, ""
// when the error is another one. os has no value for the first: its words are compared, and a script holds them.
func inTheWay(err error) string {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return ""
	}
	switch {
	case at.Err.Error() == "path escapes from parent":
		return at.Path + " is or lies behind a link that leads out of the home"
	case errors.Is(at.Err, syscall.EISDIR), errors.Is(at.Err, syscall.ENOTDIR), errors.Is(at.Err, syscall.ELOOP):
		return at.Path + ": " + at.Err.Error()
	}
	return ""
}

// accessCode tells a refusal that a token or an agreement mends from one that says the thing is not there.
func accessCode(kind hub.AccessKind) int {
	switch kind {
	case hub.NoRepo, hub.NoRevision, hub.NoEntry, hub.Disabled:
		return exitStale
	}
	return exitAuth
}

// blockerCode is the exit code of a set-up that is blocked.
func blockerCode(kind plan.BlockerKind) int {
	switch kind {
	case plan.HomeBlocked, plan.ModelBlocked, plan.EngineBlocked:
		return exitHuman
	case plan.FolderBlocked:
		return exitStale
	case plan.TrustBlocked, plan.JournalBlocked:
		return exitDamage
	case plan.PortBlocked, plan.StopBlocked:
		return exitRefused
	case plan.SpaceBlocked:
		return exitNoSpace
	}
	return exitNotReady
}

// blocked is the failure of the first blocker; the others are in the details.
func blocked(s plan.Standing) *failure {
	first := s.Blockers[0]
	f := &failure{code: blockerCode(first.Kind), what: first.Sentence, then: "Nothing was done. " + first.Fix, details: s.Blockers}
	if len(first.Command) > 1 {
		f.next = first.Command[1:]
	}
	return f
}

// sentence begins with a capital, unless it begins with a name (a file, a host, slipway), and ends with a stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	first, _, _ := strings.Cut(s, " ")
	word := strings.TrimRight(first, ",;")
	named := strings.HasPrefix(s, "slipway") || strings.ContainsFunc(word, func(c rune) bool { return (c < 'a' || c > 'z') && c != '\'' && c != '-' })
	if s[0] >= 'a' && s[0] <= 'z' && !named {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?:") {
		s += "."
	}
	return s
}
