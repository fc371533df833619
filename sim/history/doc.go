// Package history keeps what happened in a run, one event a line.
//
// An [Event] is one step that a node reached, or one thing that the world did:
// it started or crashed a node, sent a request, began a fault. Events name no
// user.
//
// # The file
//
// A history is written as JSON lines in UTF-8, each ended by one line feed. The
// first line is the header:
//
//	{"wlmsim_history":1,"scenario":"A lag","seed":7,"profile":"reviewed","events":2,"dropped":0}
//
// wlmsim_history is the version of the format, [Version]. events is how many
// lines follow, and dropped how many events came after them and were not kept.
// Every further line is an event:
//
//	{"at":11000000000,"seq":1,"kind":"request.sent","node":"d2","search":"one"}
//	{"at":11002000000,"seq":2,"kind":"wlm.acquired","node":"d2","life":1,"search":"one","group":"x1","version":9,"bucket":"00000000000000ff","held":1,"limit":1}
//
// at is in nanoseconds of virtual time since the run began and seq the place
// among all events, from 1 on. kind is the name of a step of package probe or
// one of this package's kinds. life says which start of the node it was, from 1
// on. bucket is the hash of the bucket's key in 16 hexadecimal digits. Fields
// stand in the order of [Event]; from node on, those that are zero or empty are
// left out.
//
// Promises:
//
//  1. What is read prints as it was read: [Read] takes the canonical text and
//     no other, so neither an unknown nor a repeated key, and [Write] of what
//     it returned gives the same bytes.
//  2. Read is total: whatever the bytes, it returns a history, or an error that
//     names the line. Lines are bounded by [MaxLine].
//  3. [Write] writes every event. In a text that is not UTF-8 each byte that
//     does not belong there becomes U+FFFD.
//  4. [Log.Hash] covers every field of every event that was added, in order,
//     kept or not. It is equal on every machine, and fit to tell runs apart,
//     not to withstand forgery.
//  5. A [Log] keeps the first events up to its bound, and counts on.
package history
