// Package world runs a scenario: it builds the cluster that a file describes
// out of the real nodes inside a bubble of virtual time, drives its steps, load
// and faults, lets everything heal and settle, and judges what happened.
//
// Promises:
//
//  1. The nodes are those of package sim/node and nothing else. The world hands
//     them a network in memory, a store, seeds and hooks, and talks to them as
//     clients do.
//  2. Time 0 of the file is when every node is ready and every group, rule and
//     index of the file is applied everywhere.
//  3. Steps of one instant start in file order and do not wait for one another.
//     Requests of steps to one node arrive in file order.
//  4. All that the world draws comes from streams that have the run's seed and
//     a name: the same seed gives the same draws, and a draw more in one place
//     moves nothing elsewhere.
//  5. At the end every fault ends, every hold is released, every request is
//     answered or given up, and the cluster has to settle within [SettleBound].
//     No goroutine is left.
//  6. Every request that was sent is counted exactly once: completed, failed,
//     throttled or cancelled, as its client saw it.
//  7. What cannot be found out is told as such: a write whose outcome is
//     unknown has status 503, and a connection that broke has no status.
//  8. [Drive] gives a body in Go the same cluster, beside the file's steps and
//     load. What its clients ask for over HTTP is judged as requests of steps
//     are: as its node saw it, since nobody else knows them.
//  9. [Explore] gives an explorer the same cluster, judged by the same promises,
//     with no steps and no load: what happens next is the explorer's to say.
//
// A scenario that breaks a promise or an expectation is a [Result] with verdict
// broken, not an error; an error of [Run] means that the run itself was not
// possible.
package world
