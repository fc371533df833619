package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newValidate(s streams) *cobra.Command {
	var set []string
	c := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check scenario files and run nothing",
		Long: `Check scenario files whole. All faults of all files are written to standard
error as file:line:col: message with the line; a file that is sound is named on
standard output. A folder means every .yaml file under it.`,
		Example: `  wlmsim validate scenarios
  wlmsim validate lag.yaml --set seed=8`,
		Args: atLeastOne("scenario file or folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := readFiles(s, args, set)
			if err != nil {
				return err
			}
			for _, f := range files {
				if _, err := fmt.Fprintf(s.out, "%s: ok\n", f.path); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&set, "set", nil, "PATH=VALUE: change a value of the files before they are checked (repeatable)")
	return c
}
