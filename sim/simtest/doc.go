// Package simtest runs tests of other people's programs against a cluster in
// virtual time: the nodes are the real ones, the network is in memory, and ten
// minutes of retries and back-off take about a second.
//
//	func TestBacksOff(t *testing.T) {
//		simtest.Run(t, simtest.Options{Scenario: `
//	cluster: {managers: 3, data: 2}
//	groups:
//	  - {name: analytics, resiliency_mode: enforced, resource_limits: {cpu: 0.3},
//	     throttling: {attribute: username, node_limit: 5}}
//	`}, func(c *simtest.Cluster) {
//			client := &http.Client{Transport: c.Transport()}
//			...
//		})
//	}
//
// The function runs inside a bubble (package sim/bubble). Code that uses
// package time as it is has virtual time there: time.Sleep(time.Hour) returns
// at once, an hour later. What a program needs for that is a way to be given
// an http.RoundTripper or a dial function; sockets do not work in a bubble.
//
// Promises:
//
//  1. Run returns when the function has returned, every fault is over, the
//     cluster has settled, and nothing of it is left.
//  2. Every promise that `wlmsim run` checks is checked, on the requests of the
//     test's own clients too, as are the expectations of the scenario. What
//     broke fails the test, with the seed and the command that repeats it.
//  3. The seed is that of the environment variable WLMSIM_SEED, of the options,
//     or of the scenario, in this order.
//  4. A panic in the function fails the test; FailNow in it ends it. Neither
//     leaves a cluster behind.
//  5. Explore fails the test with the schedule that shows what broke, and the
//     command that repeats it.
//  6. The smallest form of a failure is kept in a fail file, which is executed
//     first from then on: the same schedule to the same end. A schedule that
//     does not fit any more, or of which nothing can be said, is stale, which is
//     no pass. The fail file of a program that the test had before, or of another
//     one that it has, is not executed, which the log says.
//  7. What Groups, Users, Steps, Scenarios and Explorations draw is sound: it
//     parses, and it breaks no promise.
//
// Goroutines that the function starts must end with it. They must share no
// channel, timer or context with what is outside of the bubble: take
// [Cluster.Context] and not the test's own. A goroutine that waits for a
// sync.Mutex while its holder sleeps stops virtual time; only the time-out of
// go test ends that.
package simtest
