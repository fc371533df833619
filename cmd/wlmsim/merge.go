package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/report"
	"github.com/wlmsim/wlmsim/sim/world"
)

func newMerge(s streams) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Join the JSON results of several runs",
		Long: `Join what "wlmsim run --format json" wrote on several machines, sorted by file,
profile and seed. The exit code is that of all runs together.

A run that is in two files with the same verdict counts once, which is said; with
two verdicts it is refused.`,
		Example: `  wlmsim merge shard-*.json
  wlmsim merge --format json shard-*.json > all.json`,
		Args: atLeastOne("file of results"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := report.CheckFormat(format); err != nil {
				return usageError{err}
			}
			results, err := merge(s, args)
			if err != nil {
				return usageError{err}
			}
			if len(results) == 0 {
				fmt.Fprintln(s.err, "wlmsim: no file has a result: nothing was run")
			}
			if err := report.Write(s.out, format, results, sourceOf); err != nil {
				return err
			}
			return verdictOf(results)
		},
	}
	c.Flags().StringVar(&format, "format", report.Formats()[0], strings.Join(report.Formats(), ", "))
	return c
}

// merge reads all files; what is wrong with them comes back at once.
func merge(s streams, paths []string) ([]world.Result, error) {
	var all []world.Result
	var faults []error
	from := map[string]int{} // the command of a run to its place in all
	origin := map[string]string{}
	for _, path := range paths {
		results, err := readResults(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, r := range results {
			at, twice := from[r.Repeat]
			switch {
			case !twice:
				from[r.Repeat], origin[r.Repeat] = len(all), path
				all = append(all, r)
			case all[at].Verdict == r.Verdict:
				fmt.Fprintf(s.err, "%s: counted once, since %s has it too: %s\n", path, origin[r.Repeat], r.Repeat)
			default:
				faults = append(faults, fmt.Errorf("%s says %s and %s says %s: %s", origin[r.Repeat], all[at].Verdict, path, r.Verdict, r.Repeat))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b world.Result) int {
		return cmp.Or(strings.Compare(a.File, b.File), strings.Compare(a.Profile, b.Profile), cmp.Compare(a.Seed, b.Seed), strings.Compare(a.Repeat, b.Repeat))
	})
	return all, errors.Join(faults...)
}

func readResults(path string) ([]world.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	results, err := report.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}
