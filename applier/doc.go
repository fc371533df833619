// Package applier applies the versions of the cluster's state on one node, one
// after the other, on one goroutine: it publishes a version first and notifies
// the listeners second, as OpenSearch's ClusterApplierService does.
//
// The owner makes an [Applier] with [New], registers subscribers with
// [Applier.Before] and [Applier.Listen], calls [Applier.Start], and ends it
// with [Applier.Close]. From Start on, [Applier.Enqueue], [Applier.State],
// [Applier.Applied] and [Applier.Wait] may be called from any goroutine.
//
// Promises, which the tests name by number:
//
//  1. For each version, in this order and each once: step applier.received,
//     the gate, every subscriber of Before in order of registration (step
//     applier.apply before each), the publication, step applier.published,
//     every listener in order of registration (step applier.notify before
//     each), the applied version and its waiters, step applier.notified.
//  2. Versions only go forward. Every Func is told of every version, and the
//     prev of one call is the next of the call before; the first prev is
//     [cluster.Empty].
//  3. From the publication on, State returns the new version, whatever the
//     listeners do: it is one atomic load and waits for nobody.
//  4. A subscriber or listener that fails or panics is logged with its name
//     and the version; the version is published and the others run all the
//     same.
//  5. Enqueue never waits. Over the queue's bound it is [ErrQueueFull], and
//     nothing was queued.
//  6. Close lets a version that has begun (step applier.apply, or the
//     publication) end, applies no further one, wakes
//     everybody who waits, and returns when the goroutine has ended.
//
// DESIGN.md beside this file tells the race that promise 1 leaves open on
// purpose: the registration lag.
package applier
