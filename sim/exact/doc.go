// Package exact makes a run in a bubble repeat to the bit.
//
// Virtual time alone does not: the Go scheduler, select, map order and timers
// of one instant stay free. A program that is built with the overlay of
// package [github.com/wlmsim/wlmsim/sim/exact/overlay] and the build tag exact
// fixes them too. Without the tag the same calls seed what can be seeded with
// the stock toolchain.
//
// Promises:
//
//  1. With the tag (Enabled), two runs of one binary with the same seed, each
//     the first of its process, do the same in the same order, however busy
//     the machine is.
//  2. Without it, Begin seeds the global source of math/rand, and nothing else
//     repeats that the run does not seed itself.
//
// What a run must keep to, and what the lane cannot give:
//
//   - One bubble a process at a time, and nothing else of consequence in the
//     process meanwhile: what a goroutine outside the bubble sends into it
//     arrives when the wall clock says so.
//   - No wall clock, no crypto/rand, no addresses in anything that is
//     observed. Reads of files repeat if the files do.
//   - A second run in one process finds warm caches and pools, and maps that
//     were made before. It repeats as the second run of such a process. Who
//     compares traces gives each run a process of its own.
//   - A trace belongs to one binary: toolchain, flags, race detector or not.
//   - While a system call of the bubble waits, nothing in it runs.
package exact
