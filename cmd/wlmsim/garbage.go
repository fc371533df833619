package main

import "runtime/debug"

const (
	// usualGarbage is Go's own, unless GOGC says otherwise.
	usualGarbage = 100
	// liveGarbage is how much of it a live node makes before it is collected,
	// in percent of what is in use: a few megabytes, which Go would go through
	// hundreds of times a second under load, for a fifth of the time.
	liveGarbage = 400
)

// collectLess makes this process collect its garbage less often, unless it was
// told how often, and returns what takes that back.
func collectLess() (back func()) {
	before := debug.SetGCPercent(liveGarbage)
	if before != usualGarbage {
		debug.SetGCPercent(before)
	}
	return func() { debug.SetGCPercent(before) }
}
