//go:debug randseednop=0

package main

import (
	"context"
	"errors"
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
	c, err := root.ExecuteContextC(ctx)
	if err != nil {
		fmt.Fprintln(s.err, "wlmsim:", err)
		if !ran {
			fmt.Fprintf(s.err, "see %s --help\n", c.CommandPath())
		}
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
			c.Args = noArguments
		}
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	return root
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is an argument too many: there are none", args[0])
	}
	return nil
}

// atLeastOne checks that there is an argument; what says which.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s is given: %s", what, c.UseLine())
		}
		return nil
	}
}

// atMostOne checks that there is one argument or none; what says which.
func atMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%q is an argument too many: one %s, or none", args[1], what)
		}
		return nil
	}
}

// flagError says of a value that a flag does not take what it takes.
func flagError(err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := bad.GetFlag()
		return fmt.Errorf("--%s %q: want %s", flag.Name, bad.GetValue(), wanted(flag.Value.Type()))
	}
	return err
}

// wanted says in words what a flag of a type takes.
func wanted(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "uint64":
		return "a whole number, 0 or more"
	case "duration":
		return "a time such as 500ms, 90s or 1h30m"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// rivals are flags of which only one may be given: who gives one on the command
// line does not mean what the environment says of the other.
var rivals = map[string]string{"seed": "seeds", "seeds": "seed"}

// fromEnvironment sets every flag that was not given from its twin in the
// environment.
func fromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "WLMSIM_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, there := lookup(name)
		if !there || given[f.Name] || given[rivals[f.Name]] || f.Name == "help" || first != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			first = fmt.Errorf("environment variable %s: %w", name, flagError(err))
		}
	})
	return first
}
