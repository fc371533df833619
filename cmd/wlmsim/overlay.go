package main

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/exact/overlay"
)

func newOverlay(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "overlay [DIR]",
		Short: "Write the build overlay of the exact lane and print the path of its file",
		Long: `overlay writes copies of some source files of the installed Go toolchain, edited so
that a seed decides every order in a run, into DIR (default bin/_overlay), and
prints the path of the overlay file. It ends with 3 if the toolchain is not one
that it knows how to edit; everything but the exact lane works all the same.

  go test -overlay "$(wlmsim overlay)" -tags exact ./...`,
		Args: atMostOne("folder"),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "bin/_overlay"
			if len(args) == 1 {
				dir = args[0]
			}
			goroot, err := exec.CommandContext(c.Context(), "go", "env", "GOROOT").Output()
			if err != nil {
				return fmt.Errorf("ask go for its GOROOT: %w", err)
			}
			path, err := overlay.Write(strings.TrimSpace(string(goroot)), dir)
			if err != nil {
				return fmt.Errorf("the exact lane does not know this Go toolchain: %w", err)
			}
			_, err = fmt.Fprintln(s.out, path)
			return err
		},
	}
}
