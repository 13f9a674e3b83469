package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/metal"
	"slipway/metal/gpu"
	"slipway/metal/selftest"
	"slipway/wire"
)

func selftestVerb(out io.Writer) *cli.Command {
	return &cli.Command{
		Name:  "selftest",
		Usage: "run every kernel on this machine's GPU and compare with the CPU",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON instead of a table"},
			&cli.BoolFlag{Name: "quick", Usage: "only what serve tests at every start: each kernel at odd shapes, " +
				"and slices of the largest matrices"},
		},
		Action: func(c *cli.Context) error { return runSelftest(c.Context, c.Bool("quick"), c.Bool("json"), out) },
	}
}

// runSelftest ends with a failure of code exitMetal where Metal may not be used.
func runSelftest(ctx context.Context, quick, asJSON bool, out io.Writer) error {
	opt, err := accelerator.Options()
	if err != nil {
		return usage("selftest: %v; there is nothing to test, and --device cpu needs no test", err)
	}
	operations := selftest.All()
	if quick {
		operations = selftest.Operations()
	}
	result, err := testMachine(ctx, opt, operations)
	if err != nil {
		return err
	}
	result.Quick = quick
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(result)
	} else {
		err = writeTable(out, result)
	}
	if err == nil && !result.Passed {
		return &failure{exitMetal, result.Refusal}
	}
	return err
}

// testMachine tests the default GPU. The error is the context's.
func testMachine(ctx context.Context, opt metal.Options, operations []selftest.Operation) (wire.SelfTest, error) {
	result := wire.SelfTest{SchemaVersion: 1, Version: version, Degraded: []string{}}
	device, report, err := gpu.Test(ctx, opt, operations)
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	result.KernelReport = report
	if asked, err := metal.Ask(opt.Libraries); err == nil {
		result.GPU = factsOf(asked)
	}
	if err != nil {
		result.Refusal = fmt.Sprintf("Metal cannot be used: %v", err)
		return result, nil
	}
	defer device.Close()
	result.Degraded = append(result.Degraded, device.Degraded()...)
	if failed := report.FirstFailure(); failed != nil {
		result.Refusal = fmt.Sprintf("%s came out wrong, also with plain kernels: %s. Answers would be wrong, so "+
			"Metal is refused on this machine", failed.Operation, failed.Failure)
	}
	result.Passed = report.Passed
	return result, nil
}

func writeTable(out io.Writer, s wire.SelfTest) error {
	if err := selftest.WriteTable(out, s.KernelReport); err != nil {
		return err
	}
	for _, note := range s.Degraded {
		fmt.Fprintln(out, note)
	}
	if s.Passed {
		unusable := 0
		for _, r := range s.Results {
			if r.Unusable != "" {
				unusable++
			}
		}
		fmt.Fprintf(out, "%d operations on %s are right, in %.1f s\n", len(s.Results)-unusable, s.GPU.Name, s.Seconds)
		if unusable > 0 {
			fmt.Fprintf(out, "%d cannot be run here: a model that needs one of them is refused when it is loaded\n",
				unusable)
		}
	}
	return nil
}
