// Package scenario is the format of scenario files: it parses, checks and
// prints them, and runs nothing.
//
// A [File] is plain data. Nothing in this package starts a goroutine or keeps
// state; all functions may be called from anywhere, and a File may be read
// from several goroutines at once.
//
// Promises, which the tests name by number:
//
//  1. Parse is total: on any text it returns a file or [Faults], and never
//     panics. What it returns was checked whole.
//  2. Strict: an unknown key, a wrong type, a duplicate key, a value out of
//     bounds, and a name that the file does not declare are faults, each with
//     its file, line and column; a misspelt word is told what it is near. All
//     faults of a file are reported at once, but for those that syntax hides.
//  3. What [Print] writes, Parse reads back to an equal file, and Print writes
//     that the same way again.
//  4. An expression that compiles names only what is there: ids, loads, nodes,
//     groups and fields. It works out without an error wherever the world can
//     answer.
//  5. [File.Set] gives what the file would be with the value written in it,
//     checked by the same rules.
//  6. [File.Filled] alone knows defaults, and changes nothing that is given.
//  7. The schema, the starter and the catalog agree with the types: every
//     example parses, every action and promise has one.
//
// There is one way to write each thing. A step holds exactly one action. Faults
// of the network, of disks and the like end by their for:, and a crash by its
// restart_after:; cuts, bad links and crashes may also end by a step of its own,
// heal or restart, which is how an actor of an exploration ends them. At the end
// of a run everything heals. A user has roles by being declared under users: and
// in no other way. A service time that a search or a load gives is drawn once for
// each search; an index's is drawn for each shard.
package scenario
