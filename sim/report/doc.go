// Package report writes finished results for people and for machines. It runs
// nothing and judges nothing: what it writes is in the results, and in the text
// of the scenario files, which the caller hands in.
//
// Promises:
//
//  1. The same results give the same bytes.
//  2. Every run that did not hold shows its seed, the checks that did not hold
//     with their place in the file, and the command that repeats it; for a run
//     of the plain lane also the exact lane's command.
//  3. [Read] takes what [JSON] writes and nothing else: no unknown, repeated or
//     missing member, no unknown verdict, nothing after the end. On any bytes
//     it returns results or an error, and never panics.
//  4. What a run says cannot break out of its place: a cell of a table, a
//     section of XML, a fenced block.
//  5. The runs of a file under several profiles stand side by side, a column a
//     profile, over all seeds; every row whose columns are not all alike is
//     marked and named: verdicts, counts of searches, counters of groups,
//     checks and expectations. A step's expectation is recorded only where it
//     did not hold; elsewhere its column has a dash, as has that of one that
//     the file asks for under other profiles.
//
// All functions may be called from several goroutines at once.
package report
