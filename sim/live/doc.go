// Package live runs nodes in the live world: TCP and UDP sockets, the wall
// clock, Bolt files. [StartNode] starts one, [Up] a cluster of them in this
// process or in processes of their own.
//
// The streams of gossip, one for each message that memberlist sends, share kept
// connections (package streams). In a virtual world each has its own.
//
// Promises:
//
//  1. A node that listens anywhere but on loopback does not start without a
//     gossip key and TLS files, and the error says how to make them.
//  2. A node that starts again on its data folder has its old identity and its
//     old addresses, and needs no seed to find the others.
//  3. Stopping a cluster ends every goroutine and process that it started and
//     removes the temporary folder, if it made one.
package live
