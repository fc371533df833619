package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/sim/campaign"
)

// workerName is the subcommand of a worker process.
const workerName = "worker"

// newWorker is what `run` and `explore` start for themselves. An interrupt of
// the terminal goes to all their processes; the worker leaves it to its parent.
func newWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Hidden: true,
		Short:  "Do runs and explorations for a parent process: a task a line of input, an answer a line of output",
		RunE: func(*cobra.Command, []string) error {
			signal.Ignore(os.Interrupt)
			signal.Reset(syscall.SIGTERM)
			return campaign.Serve(s.in, s.out, &campaign.Doer{})
		},
	}
}
