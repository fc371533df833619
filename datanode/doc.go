// Package datanode is a simulated data node: it holds the shards that the
// cluster's state puts on it, works on each for a drawn service time with a
// bounded pool of workers, and answers with plausible documents.
//
// Nothing is stored and no goroutine is started: the pool is a count of busy
// workers and a queue of waiting tasks, and each search waits for its own tasks
// on its caller's goroutine. A pool that nobody uses costs nothing.
//
// Promises:
//
//  1. One shard of one search is one task. At most Workers tasks are served at
//     once, and at most Queue tasks wait, first come first served. A task that
//     finds the queue full fails alone, with a rejected_execution_exception of
//     its own; the other shards of its search are not touched.
//  2. A worker is busy for exactly the task's service time. When the search's
//     context ends, its workers and its places in the queue are free at once.
//  3. Answers depend on the index's name, the shard and the query, and on
//     nothing else: equal in every run and on every node.
//  4. A service time is drawn from the stream of (seed, node, coordinator,
//     search, index, shard), so the order in which searches arrive does not
//     change what they draw. A search whose name came before from the same
//     coordinator draws the next value of its stream.
//  5. A shard that is not here is a failure of that shard.
//     A distribution that comes with a search is drawn from in the same way, in
//     place of the index's.
//  6. [DataNode.Close] ends every search and returns when none is left.
//  7. A context of a scroll or a point in time is kept from the request that
//     opens it until it is freed or its time since its last use is over, and no
//     more of them than the cluster's settings allow. A search that fails keeps
//     none that it opened. A scroll goes on where its coordinator said that it
//     stands.
//  8. Of a search that says so, no more tasks are in the pool or before it at
//     once than it allows.
//
// All methods may be called from any goroutine.
package datanode
