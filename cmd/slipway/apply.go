package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/consent"
	"slipway/installer/plan"
)

func applyVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "do exactly the plan of a file, by its digest",
		Flags: []cli.Flag{homeFlag(),
			&cli.StringFlag{Name: "plan", Usage: "file that slipway plan --out wrote"},
			&cli.StringFlag{Name: "digest", Usage: "digest of the plan that the person saw and agreed to"},
			sourceFlag(),
			modelDirFlag(),
			&cli.BoolFlag{Name: "detach", Usage: "return at once; slipway wait waits for the end"},
			&cli.BoolFlag{Name: "set-aside-journal", Usage: "move a damaged journal out of the way first"},
			&cli.StringFlag{Name: "job", Hidden: true},
			eventsFlag()},
		Action: func(c *cli.Context) error {
			if c.String("job") != "" {
				return runJob(s, c)
			}
			return applyPlan(s, c)
		},
	}
}

// applyPlan is the main line: the file's request, the plan made again, compared, consented by its digest, carried out.
func applyPlan(s *session, c *cli.Context) error {
	if c.String("plan") == "" || c.String("digest") == "" {
		return usage("apply needs --plan FILE and --digest DIGEST")
	}
	if c.Bool("set-aside-journal") {
		if err := setAsideJournal(s, c.String("home")); err != nil {
			return err
		}
	}
	prepared, err := s.planAgain(c)
	if err != nil {
		return err
	}
	if err := consent.Digest(c.String("digest")).Check(prepared.Plan, prepared.Standing); err != nil {
		return err
	}
	if !prepared.Standing.CanApply {
		f := blocked(prepared.Standing)
		switch prepared.Standing.Blockers[0].Kind {
		case plan.StopBlocked, plan.JournalBlocked:
		default: // a neighbour that works now: exit 13, as everywhere
			f.code = exitStale // the plan was good when it was made: a precondition does not hold any more
		}
		return f
	}
	if c.Bool("detach") {
		return detach(s, c, prepared)
	}
	if prepared.Standing.PendingCount() == 0 && prepared.Recorded && !prepared.Open {
		return nothingToDo(s, c, prepared)
	}
	old := s.whatServes(c.String("home"))
	done, err := s.apply(prepared)
	if err != nil {
		return s.rollBack(c, prepared, old, err, applyArgs(c))
	}
	return finishSetup(s, c, prepared, done)
}

// planAgain makes the plan again from the file's request, and refuses a file that is not, byte for byte, what that
// plan writes, or whose digest is not the one that was agreed to. Home and source come from the flags, never from the
// file.
func (s *session) planAgain(c *cli.Context) (installer.Prepared, error) {
	data, err := readPlanFile(c.String("plan"))
	if err != nil {
		return installer.Prepared{}, &failure{code: exitUsage, what: "The plan file cannot be read: " + err.Error() + "."}
	}
	request, home, digest, err := plan.ReadFile(data)
	if err != nil {
		return installer.Prepared{}, err
	}
	if digest != c.String("digest") {
		return installer.Prepared{}, &plan.ErrFile{Why: fmt.Sprintf("it says %s, and --digest says %s", digest, c.String("digest"))}
	}
	asked, err := apply.ResolveHome(c.String("home"), s.place.UserHome)
	if err != nil {
		return installer.Prepared{}, err
	}
	if asked != home {
		return installer.Prepared{}, &plan.ErrFile{Why: fmt.Sprintf("it was made for the home %q, and this command means %q; give the same --home", home, asked)}
	}
	modelDir, err := modelDirOf(c)
	if err != nil {
		return installer.Prepared{}, err
	}
	prepared, err := installer.Prepare(s.ctx, installer.Input{Request: request, Home: c.String("home"), Source: c.String("source"),
		ModelDir: modelDir}, s.place)
	var choice *installer.ChoiceError
	if errors.As(err, &choice) {
		return prepared, &plan.ErrFile{Why: choice.Why}
	}
	if err != nil {
		return prepared, err
	}
	if prepared.Plan.Digest != digest {
		return prepared, &plan.ErrFile{Why: fmt.Sprintf("made again it is %s: %s", prepared.Plan.Digest, whatChanged(data, prepared.Plan))}
	}
	if !bytes.Equal(data, plan.WriteFile(prepared.Plan)) {
		return prepared, &plan.ErrFile{Why: "its text is not that of the plan with this digest: somebody changed it"}
	}
	return prepared, nil
}

func readPlanFile(name string) ([]byte, error) { return readBounded(name, plan.MaxFileBytes) }

// readBounded reads one byte more than a file may have, of a plain file only: a device or a pipe has no end.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no plain file", name)
	}
	return io.ReadAll(io.LimitReader(f, most+1))
}

// whatChanged says, for the person, which part of the decisions is another one now. The file is only compared.
func whatChanged(file []byte, now plan.Plan) string {
	var then plan.Plan
	if err := json.Unmarshal(file, &then); err != nil {
		return "the file is not what it was"
	}
	var parts []string
	for _, part := range []struct {
		name      string
		then, now any
	}{
		{"the home", then.Decisions.Home, now.Decisions.Home},
		{"the platform", then.Decisions.Target, now.Decisions.Target},
		{"the model or its lock", then.Decisions.Model, now.Decisions.Model},
		{"the profile's numbers", then.Decisions.Profile, now.Decisions.Profile},
		{"the disk cache or the normalize rules", [2]any{then.Decisions.Request.DiskCacheBytes, then.Decisions.Request.Normalize}, [2]any{now.Decisions.Request.DiskCacheBytes, now.Decisions.Request.Normalize}},
		{"the server's source or Go", then.Decisions.Engine, now.Decisions.Engine},
	} {
		if !reflect.DeepEqual(part.then, part.now) {
			parts = append(parts, part.name)
		}
	}
	if len(parts) == 0 {
		return "its actions or its digest were changed"
	}
	return strings.Join(parts, ", ") + " changed since"
}

func applyArgs(c *cli.Context) []string {
	args := append([]string{"apply", "--plan", spelledOut(c.String("plan")), "--digest", c.String("digest")}, homeArgs(c)...)
	for _, name := range []string{"source", "model-dir"} {
		if c.IsSet(name) {
			args = append(args, "--"+name, spelledOut(c.String(name)))
		}
	}
	return args
}

func jobID(digest string) string { return strings.TrimPrefix(digest, "sha256:")[:12] }
