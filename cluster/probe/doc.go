// Package probe gives every order-sensitive place of a node a name.
//
// A node calls [Probe.At] at each step with what the step is about. A nil
// *Probe costs one branch. Otherwise every [Hook] of the probe sees the event
// in turn, on the goroutine that reached the step: a hook may record the
// event, delay it, or hold it until somebody lets it go. So one mechanism
// serves the event history, the timeline, windows that are held open, and the
// exploration of orders.
//
// Promises:
//
//  1. At returns only after every hook has returned, hooks being called in
//     the order in which they were given.
//  2. [Holds.Hold] parks every matching arrival, and no other, until the hold
//     is released; a count bounds how many it parks. A released hold lets all
//     its arrivals go, and each arrival is parked by one hold at the most.
//  3. [Holds.Close] lets everything go, and parks nothing from then on.
//
// No step is reached while a lock is held, so a hold never blocks more than
// the goroutine that it parks and whoever waits for that one.
package probe
