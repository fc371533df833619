package main

import (
	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

func newSchema(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of scenario files",
		Example: `  wlmsim schema > wlmsim.schema.json
  # then, as the first line of a scenario file, for editors:
  # yaml-language-server: $schema=wlmsim.schema.json`,
		RunE: func(*cobra.Command, []string) error {
			_, err := s.out.Write(scenario.Schema())
			return err
		},
	}
}
