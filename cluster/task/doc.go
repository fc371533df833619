// Package task lists what a node is doing, and ends it when somebody asks.
//
// A [Registry] is one node's list. Who begins a piece of work enters it with
// [Registry.Begin] and works under the context that it returns; [Task.End] takes
// it out again. Parents and children are known by their [ID], so that a search
// and what it has other nodes do can be told to belong together.
//
// Promises:
//
//  1. A task is listed from Begin to End, under a number that the node gives to
//     no other one while it lives.
//  2. [Registry.Cancel] ends the context of each task that it chooses, whose
//     cause is then an [Cancelled] error with the reason. A task whose context
//     derives from another one's ends with it. Nothing else ends by it: the
//     task is over when its owner says so. Work that entered by itself, see
//     [Registry.Enter], is told that reason in place of a context.
//  3. Lists are in the order of the numbers.
//
// The nil *Registry has no tasks: Begin returns its context and a nil *Task,
// whose End does nothing. All methods may be called from any goroutine; none
// blocks but Cancel when it is told to wait.
package task
