package main

import (
	"context"
	"errors"

	"github.com/wlmsim/wlmsim/sim/live"
)

// Exit codes. They are part of what the command promises.
const (
	exitHeld        = 0   // all held
	exitUsage       = 2   // bad usage or a bad file
	exitUndecided   = 3   // undecided, or it could not run
	exitInterrupted = 130 // interrupted
)

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode turns how a command ended into its exit code. What went wrong
// before a command ran is bad usage.
func exitCode(err error, ran bool) int {
	var usage usageError
	var options live.OptionsError
	switch {
	case err == nil:
		return exitHeld
	case !ran, errors.As(err, &usage), errors.As(err, &options):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitUndecided
}
