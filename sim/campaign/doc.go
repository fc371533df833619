// Package campaign runs and explores many scenarios in worker processes, so that
// a run that crashes or hangs ends neither the others nor the program that asks.
//
// A worker is the program itself, started again with a subcommand that calls
// [Serve]. It reads a task a line from its standard input and writes an
// answer a line to its standard output, one at a time, and ends with its
// input. What a worker writes to standard error is kept, up to [MaxNoise]
// bytes a task, and shown when the worker dies.
//
// Promises:
//
//  1. [Run] and [Explore] return the results in the order of the tasks,
//     whichever worker was done first.
//  2. A worker that crashes, or that writes something else than an answer,
//     makes its own run undecided and no other, and says so with what it wrote
//     last. The next run gets a new worker.
//  3. A run that takes longer than the limit, by the wall clock, is undecided:
//     its worker is made to print its goroutines and is then killed. So is an
//     exploration that takes no turn for as long as that.
//  4. With StopAtFirst the results end with the first task, in order, that did
//     not hold because something broke; which one that is does not depend on
//     the number of workers, as far as runs repeat.
//  5. When the context ends, the workers are killed; what was finished is
//     returned, with the context's error. One that explores or shrinks is asked
//     for what it has, first.
//  6. When Run or Explore has returned, no worker and no goroutine is left.
//     When the parent dies, its workers end.
//  7. An exploration whose worker died, or was killed since it hung, names the
//     schedule that was under way and the command that repeats it. A panic of a
//     goroutine of the explored nodes is a finding: it has broken. Any other
//     death leaves it undecided.
package campaign
