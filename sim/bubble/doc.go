// Package bubble is the one place that enters a testing/synctest bubble: a
// group of goroutines with a clock of its own, which starts at Epoch and moves
// to the next timer whenever all of them are blocked. It works in an ordinary
// command as well as in a test.
//
// Promises:
//
//  1. Run returns only when every goroutine of the bubble has ended, or with
//     an *Error that names those that have not.
//  2. A deadlock, a goroutine left blocked, a panic or a runtime.Goexit inside
//     the function given to Run become an *Error; the process goes on.
//  3. One Run shares nothing with another. Runs may follow one another and
//     may stand side by side on different goroutines.
//  4. Code without tests imports testing/synctest nowhere else.
//
// What cannot be turned into an error:
//
//   - A panic in another goroutine of the bubble than the one that runs the
//     function ends the process, as it does anywhere in Go.
//   - A goroutine that waits for a sync.Mutex does not count as blocked. If the
//     holder of the lock sleeps, sends or waits for the network, virtual time
//     stops and Run does not return. The same is true of sockets, pipes of the
//     operating system and endless loops. Only a wall-clock watchdog in a
//     parent process can end such a run.
//   - Goroutines that a failed Run names stay in memory until the process
//     ends: nothing can wake them. A caller that meets many failures should
//     run in processes that it replaces.
package bubble
