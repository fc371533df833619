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

// newWorker is what `run` starts for itself. An interrupt of the terminal goes
// to all its processes; the worker leaves it to its parent.
func newWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Hidden: true,
		Short:  "Do runs for a parent process: a task a line of input, an answer a line of output",
		RunE: func(*cobra.Command, []string) error {
			signal.Ignore(os.Interrupt)
			signal.Reset(syscall.SIGTERM)
			var d campaign.Doer
			return campaign.Serve(s.in, s.out, d.Do)
		},
	}
}
