// Package wire holds the messages that a search causes between nodes and
// their binary form: what the coordinator asks a data node, and what the data
// node answers. Both sides know this package and not each other.
//
// Promises:
//
//  1. What the Append methods write, the Decode functions read back to an
//     equal value: a list or a query that is empty is nil afterwards, and a
//     shard that failed has no other fields. Counts must not be negative.
//  2. Decode functions are total: any other input is an error that says what
//     and where, and costs no more memory than the input's length allows.
//     The same holds for a [Kept] and its text.
//  3. A message carries an explicit list of headers. The principal has no
//     field here.
package wire
