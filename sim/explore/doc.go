// Package explore finds out what can happen: it runs the explore: block of a
// scenario in every order of its steps, or in orders that a strategy draws, and
// says which outcomes there are and how to reach each.
//
// Where the block names a node, that node is explored alone, and it is the node
// itself: its applier, throttle and coordinator, not a model of them. A command
// passes through [cluster.Apply] into the applier's queue, as the replica hands
// it over; raft, gossip and HTTP are left out. Searches fan out to one data node
// that is not explored, holds every shard and answers at once: what is explored
// is order, not time, and the clock stands still. The view of the rules is the
// one from before the first turn.
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
// In full, where ACTOR is a name under actors: and N a number from 1 on, without
// a zero in front:
//
//	schedule = [ entry { blanks entry } ]
//	entry    = lane [ ( "×" | "*" ) N ]
//	lane     = ACTOR | "applier" | NODE ".applier" | road [ "." 2..9 ] | "cluster.time"
//	road     = NODE ">" NODE ( ".raft" | ".gossip" )
//
// Later versions read what this one writes. Whether a schedule still fits its
// file is another matter: a step more in the node is a turn more.
//
// A schedule that ends early goes on without preemptions: the lane that took
// the last turn goes on while it can, then the first one, in the order of the
// file and the applier last, that can. A switch from a lane that could have
// gone on is a preemption.
//
// # Whole clusters
//
// A block that names no node is about the whole cluster: raft, gossip and all,
// of at most [scenario.MaxExploredNodes] nodes. Each execution builds it anew, in
// a bubble of its own, and begins when m1 leads and the cluster is in order. Its
// lanes are the actors, the applier of each node, as m1.applier, and for each two
// nodes what is under way between them, as m1>d2.raft and m1>d2.gossip: there, a
// turn is the arrival of the message that has waited longest as the next one of
// its stream, and one of m1>d2.raft.2 that of the next message of another stream,
// which overtakes it. A message is what a node writes to one stream in one turn:
// entries and votes and their answers, forwarded commands, searches, news of what
// is applied. A stream keeps its order; all else is a choice, of up to three
// streams of a kind between two nodes at a time. A set of lanes is one word of 64
// bits: in a cluster of five, whose nodes take up to 40 for one stream of each kind
// on each way, two are a choice to and from m1 alone, if not everywhere.
//
// Actors may crash nodes and restart them, cut the network and heal it, and move
// the leadership, each in one turn. What is under way to a node that crashes can
// arrive before or not at all; what it sent arrives, and then its peers hear of
// the crash, each connection in a turn of its own. In a program that does such
// things the making and the ending of connections are messages, too, so that one
// can be under way while its peer goes down. A node that starts again does so by
// itself, and is explored from the moment on that it has caught up. In a cluster
// of several managers there is a lane cluster.time as well: at most twice in a
// schedule, time passes while others could go on, until something comes of it,
// for as long as an election takes; what is under way stays so meanwhile. Who
// takes over is the first manager of those that can. After the last turn all
// heals, and what is judged is what a run judges.
//
// Datagrams are no choices. A node sends them by timers alone, the probes of
// memberlist, their answers and the news that rides on them, and the clock moves
// by nanoseconds, so that no timer of a node fires: in a turn none is ever sent.
// The clock moves in a turn of cluster.time, and when no lane can take a turn and
// a client still waits, until a lane parks. What is sent meanwhile, datagrams and
// heartbeats above all, arrives by itself: such a stretch has thousands of
// messages, and a lost datagram shows as nothing but a later probe. If nothing
// comes of it for longer than a cluster needs to settle, all heals.
//
// There are too many orders to try each: schedules are drawn, [Random] or [PCT],
// and no result is complete. PCT gives priorities not to lanes but to turns, which
// meets more of what can happen where most lanes are roads of messages. In the
// exact lane (package exact) a schedule repeats to the bit. Elsewhere the Go
// scheduler may now and then have two goroutines of one node in another order,
// such that two entries of raft travel as one message or as two: a schedule that
// takes another course is tried a few times more, and if it still does, the
// verdict is undecided. Where time passes in turns, so do timers that draw from a
// source which nobody seeds there: that such a schedule took another course is
// said, and no more.
//
// # Workers
//
// Several schedules of one node are executed at the same time, [Options.Workers],
// each by a node of its own in a bubble of its own. A depth-first search is cut
// between what is left to explore below a point of its path and what above; the
// lanes that sleep there go along, so a part is explored as it would be in its
// turn. Each schedule that is drawn has a source of its own, which its number
// gives. What the workers find is taken in in the order in which one alone would
// find it, up to the schedule where one alone would end; what lies beyond is
// thrown away. A few schedules are executed by one worker before others are
// hired, which is enough for most files. A whole cluster has one worker: raft
// draws from a source that the process shares.
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
//     the controller does not control, and the verdict is undecided; but for
//     whole clusters with crashes and cuts, this is so in the exact lane alone.
//  4. Every promise of package check that a single node can break, and of a
//     whole cluster every one, is judged on every executed schedule.
//  5. The result depends on the file and the options alone, and not on the
//     number of workers; each outcome's schedule is the one with the fewest
//     switches, then turns, that was met. Of a whole cluster, this is so in the
//     exact lane.
//  6. Memory follows the length of a schedule, the number of outcomes and that
//     of workers, not the number of schedules.
//  7. What [Options.Box] gives knows the schedule under way of each worker, and
//     which is whose, also when a panic of a goroutine of the node ends the
//     process.
package explore
