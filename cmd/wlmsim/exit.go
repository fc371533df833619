package main

import (
	"context"
	"errors"
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

// exitCode turns how a command ended into its exit code.
func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitHeld
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitUndecided
}
