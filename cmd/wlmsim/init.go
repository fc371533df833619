package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

func newInit(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented scenario to begin with",
		Long:  "Write a commented scenario to begin with, into FILE (scenario.yaml unless named), which must not be there yet.",
		Args:  atMostOne("file"),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "scenario.yaml"
			if len(args) == 1 {
				path = args[0]
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
			if errors.Is(err, os.ErrExist) {
				return usageError{fmt.Errorf("%s is there already and is not overwritten", path)}
			}
			if err != nil {
				return err
			}
			_, err = f.WriteString(scenario.Starter())
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
			fmt.Fprintf(s.err, "wrote %s; now: wlmsim run %s\n", path, quoted(path))
			return nil
		},
	}
}
