// Package explore finds out what can happen: it runs the explore: block of a
// scenario in every order of its steps, or in orders that a strategy draws, and
// says which outcomes there are and how to reach each.
//
// Where the block names a node, that node is explored alone, and it is the node
// itself: its applier, throttle and coordinator, not a model of them. A command
// passes through [cluster.Apply] into the applier's queue, as the replica hands
// it over; raft, gossip and HTTP are left out. Searches fan out to one data node that is not explored, holds
// every shard and answers at once: what is explored is order, not time, and the
// clock stands still. The view of the rules is the one from before the first
// turn.
//
// # Lanes, steps and turns
//
// Each actor of the block is a lane, and so is the node's applier, by the name
// applier. A lane parks before each of its actions, and at each step of package
// probe after which it touches something that others touch too; a step that
// declares that it touches nothing is passed, unless a cancel may come in
// between. When all lanes are parked, or wait for another one,
// the controller lets one go, which is a turn: it runs until it parks again.
// Nothing else runs meanwhile but what it woke.
//
// A search with hold: true stays at its data node until no lane can take a
// turn; it is the last action of its actor. Then the held searches end, one
// after the other, and the values of observe: are read.
//
// The changes of an actor that together: names are made elsewhere, in one turn,
// and reach the node as one version, as those of a snapshot do.
//
// # Schedules
//
// A schedule is the names of the lanes in the order in which they took their
// turns, with a space between them; a lane that takes n turns in a row is
// written NAME×n (NAME*n is read too):
//
//	update applier×3 first×4 second×6 applier×4
//
// A schedule that ends early goes on without preemptions: the lane that took
// the last turn goes on while it can, then the first one, in the order of the
// file and the applier last, that can. A switch from a lane that could have
// gone on is a preemption.
//
// # Whole clusters
//
// A block that names no node is about the whole cluster: raft, gossip and all,
// of at most [MaxNodes] nodes. Each execution builds it anew, in a bubble of its
// own, and begins when m1 leads and the cluster is in order. Its lanes are the
// actors, the applier of each node, as m1.applier, and for each two nodes what is
// under way between them, as m1>d2.raft and m1>d2.gossip: there, a turn is the
// arrival of the message that was sent first. A message is what a node writes to
// one stream in one turn: entries and votes and their answers, forwarded
// commands, searches, news of what is applied. A stream keeps its order, and so
// do streams of one kind between two nodes; all else is a choice.
//
// Datagrams, and the making and ending of connections, are not explored: they
// happen by themselves, at once or when their time has come. The clock moves by
// nanoseconds, so that no timer of a node fires, unless no lane can take a turn
// and a client still waits. Then it moves until a lane parks, and what is sent
// meanwhile, heartbeats above all, arrives by itself.
//
// There are too many orders to try each: schedules are drawn, [Random] or [PCT],
// and no result is complete. In the exact lane (package exact) a schedule repeats
// to the bit. Elsewhere the Go scheduler may now and then have two goroutines of
// one node in another order, such that two entries of raft travel as one message
// or as two: a schedule that takes another course is tried a few times more, and
// if it still does, the verdict is undecided.
//
// # Workers
//
// Several schedules are executed at the same time, [Options.Workers], each by
// nodes of its own in a bubble of its own. A depth-first search is cut between
// what is left to explore below a point of its path and what above; the lanes
// that sleep there go along, so a part is explored as it would be in its turn.
// Each schedule that is drawn has a source of its own, which its number gives.
// What the workers find is taken in in the order in which one alone would find
// it, up to the schedule where one alone would end; what lies beyond is thrown
// away. A few schedules are executed by one worker before others are hired, which
// is enough for most files.
//
// Promises, which the tests name by number:
//
//  1. Every order: without a bound, strategy dfs executes each order of turns
//     once, and Complete says that it did. With a bound on preemptions it does
//     so for all orders within the bound.
//  2. Reduction loses no outcome: orders that differ only in turns that touch
//     nothing in common, by what their steps declare, are not all executed, and
//     the outcomes are those of all.
//  3. A schedule repeats: the same file and schedule give the same turns, the
//     same events and the same outcome. Where they do not, something runs that
//     the controller does not control, and the verdict is undecided.
//  4. Every promise of package check that a single node can break, and of a
//     whole cluster every one, is judged on every executed schedule.
//  5. The result depends on the file and the options alone, and not on the
//     number of workers; each outcome's schedule is the one with the fewest
//     switches, then turns, that was met. Of a whole cluster, this is so in the
//     exact lane, where there is one worker.
//  6. Memory follows the length of a schedule, the number of outcomes and that
//     of workers, not the number of schedules.
//  7. What [Options.Box] gives knows the schedule under way of each worker, and
//     which is whose, also when a panic of a goroutine of the node ends the
//     process.
package explore
