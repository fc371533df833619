// Package shrink makes the scenario file of a failure smaller, as long as it
// fails in the same way: the same promise with the same constant sentence, the
// same expectation, or the same forbidden outcome. Where every step of a run
// could be done, every step of a smaller one can be.
//
// Much is taken out of the file at once first: all nodes but one manager and one
// data node, or the whole cluster of an exploration but for one node; then all
// that is said in one field, and halves of it, and quarters. Then one thing at a
// time is taken out, or made less, until nothing is left (see [Moves]): nodes,
// chunks of lists and all that is said of one name, single items, what may be
// left out, numbers. A smaller file is no replay: its schedules are searched
// anew, or some seeds are tried, since with fewer steps another schedule or seed
// may be the one that fails. Where schedules are drawn, that of the larger file
// is followed first, as far as it fits. What is left at the end is a scenario
// file of its own, with the schedule or the seed and the command that repeats it
// above it.
//
// Promises, which the tests name by number:
//
//  1. What comes out fails, fails in the same way, and is not larger than what
//     went in, by [Size].
//  2. Least: none of its [Moves] still fails, unless the time was over, which
//     is said.
//  3. The file that is written parses to the file that was found, with its
//     failure, and prints as it parses.
//  4. A run counts as failing if it fails twice with the same seed; how often
//     the last file failed of a few runs more is said.
//  5. A failure of an exploration has the fewest preemptions that were found: of
//     one node the fewest that there are, if the orders with fewer ones are not
//     too many to try.
//  6. Who ends it early gets the smallest file that was found.
//
// What broke because something did not break (breaks: of the file), or because
// an outcome that is required cannot happen, does not shrink: with less in the
// file even less happens.
package shrink
