//go:debug randseednop=0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() { os.Exit(run()) }

func run() int {
	return execute(streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:])
}

// streams are where a command reads and writes: results go to out, narration
// and progress to err.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// execute runs the command line and returns its exit code. The first interrupt
// stops the command cleanly, the second ends the process at once.
func execute(s streams, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from here on the next signal has its default effect
	ran := false
	root := newRoot(s)
	for _, c := range root.Commands() {
		do := c.RunE
		c.RunE = func(c *cobra.Command, args []string) error {
			ran = true
			return do(c, args)
		}
	}
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(s.err, "wlmsim:", err)
	}
	return exitCode(err, ran)
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "wlmsim",
		Short: "Clusters of simulated search nodes that throttle like OpenSearch's workload management",
		Long: `wlmsim runs clusters of simulated search nodes whose coordinators throttle searches
as OpenSearch's workload management (WLM) does: a permit for each group, user or
role, or an answer 429.

Every flag has a twin in the environment: --data-dir is WLMSIM_DATA_DIR.
Exit codes: 0 all held, 1 something broke, 2 bad usage or a bad file, 3 undecided
or could not run, 130 interrupted.`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return fromEnvironment(c.Flags(), os.LookupEnv) },
	}
	root.AddCommand(newRun(s), newExplore(s), newMerge(s), newValidate(s), newSchema(s), newSteps(s), newInit(s), newUp(s), newNode(s),
		newOverlay(s), newVersion(s), newWorker(s))
	for _, c := range root.Commands() {
		if c.Args == nil {
			c.Args = cobra.NoArgs
		}
	}
	return root
}

// fromEnvironment sets every flag that was not given from its twin in the
// environment.
func fromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "WLMSIM_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, there := lookup(name)
		if !there || f.Changed || f.Name == "help" || first != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			first = fmt.Errorf("environment variable %s: %w", name, err)
		}
	})
	return first
}
