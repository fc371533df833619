// Package overlay writes the build overlay of the exact lane: copies of a few
// source files of the installed Go toolchain with small edits, one file more,
// and the list of them that "go build -overlay" and "go test -overlay" read.
//
// Promises:
//
//  1. Every edit is found by the exact text that it stands beside. If a
//     toolchain does not have that text as often as expected, Write names the
//     file and the text, and writes nothing.
//  2. Write changes nothing in the toolchain. What it writes follows from the
//     toolchain and this package alone.
//  3. A program built with the overlay behaves as one without it until
//     [github.com/wlmsim/wlmsim/sim/exact.Begin], but for one thing: the seed
//     that the runtime draws at its start (of the hashes of maps, above all)
//     is the same in every process, or follows from the environment variable
//     WLMSIM_STARTUP_SEED if that is set. So such a program is for simulation,
//     not for service on an open network.
//
// In the runtime, between exact.Begin and exact.End, for goroutines in a
// bubble only: one seeded stream gives all random numbers of the runtime, the
// order in which a select polls its cases, and the order of timers of one
// instant; no goroutine is preempted, and none loses its processor in a system
// call; a mutex decides by virtual time whether somebody starves; goroutines
// outside the bubble go to the end of the queue; and memory is collected at
// moments that the bubble's clock decides. Other cheap draws of the runtime
// (locks, the memory sampler) are left alone, because they happen at moments
// that depend on timing.
//
// At all times: a context cancels its children in the order in which they were
// made, and net/http's server closes its connections in the order in which they
// came. Both walk through a map of pointers, whose order follows from addresses.
// That is what the overlay cannot repair in general: a map of more than eight
// entries whose keys are, or hold, pointers has an order that does not repeat.
// Nothing that is observed may follow from walking through one.
package overlay
