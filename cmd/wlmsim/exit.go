package main

import (
	"context"
	"errors"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/live"
)

// Exit codes. They are part of what the command promises.
const (
	exitHeld        = 0   // all held
	exitBroken      = 1   // a promise, an expectation or a forbidden outcome broke
	exitUsage       = 2   // bad usage or a bad file
	exitUndecided   = 3   // undecided, or it could not run
	exitInterrupted = 130 // interrupted
)

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// verdictError says that a command did its work, and that not all held.
type verdictError struct {
	verdict check.Verdict
	text    string
}

func (e verdictError) Error() string { return e.text }

// exitCode turns how a command ended into its exit code. What went wrong
// before a command ran is bad usage.
func exitCode(err error, ran bool) int {
	var usage usageError
	var options live.OptionsError
	var verdict verdictError
	switch {
	case err == nil:
		return exitHeld
	case !ran, errors.As(err, &usage), errors.As(err, &options):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &verdict) && verdict.verdict == check.Broken:
		return exitBroken
	}
	return exitUndecided
}
