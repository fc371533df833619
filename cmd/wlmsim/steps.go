package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

func newSteps(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "steps",
		Short: "List what a scenario file may say: steps, faults, places in a node and promises, each with an example",
		RunE: func(*cobra.Command, []string) error {
			w := bufio.NewWriter(s.out)
			var kind scenario.Kind
			for i, item := range scenario.Catalog() {
				if item.Kind != kind {
					if i > 0 {
						fmt.Fprintln(w)
					}
					kind = item.Kind
				}
				fmt.Fprintf(w, "%s %s: %s\n", item.Kind, item.Name, item.Means)
				for line := range strings.Lines(item.Example) {
					fmt.Fprintf(w, "    %s", line)
				}
			}
			return w.Flush()
		},
	}
}
