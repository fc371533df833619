package exact

import "math/rand"

// Options say more about a run; the zero value is what is meant to be used.
type Options struct {
	// Shuffle lets a seeded coin decide whether a goroutine that becomes ready
	// runs next or waits in the queue: more orders, for hunting. Only with
	// Enabled.
	Shuffle bool
}

// Begin makes what is random in the process follow from the seed, until End.
// It is called outside any bubble, before the run's own is entered. With
// Enabled one run at a time is possible: Begin panics if another has not ended.
// Otherwise runs may stand side by side, but share the global source of
// math/rand, from which raft and memberlist draw; that source follows from the
// seed only in a program with "//go:debug randseednop=0".
func Begin(seed uint64, o Options) {
	//lint:ignore SA1019 raft and memberlist draw their jitter from the global source, and nothing else can seed it
	rand.Seed(int64(seed))
	switchOn(seed, o)
}

// End is called after Begin, when the run's bubble has been left. It gives the
// process back what Begin took.
func End() { switchOff() }
