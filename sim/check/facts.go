package check

import (
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/wlm"
)

// Facts are what only the end of a run shows. They are collected when every
// request is answered and the cluster had its time to settle. A field that is
// nil has not been looked at, and what needs it is undecided; where there was
// nothing to see, an empty slice says so.
type Facts struct {
	Lives      []Life      // of every life of every node; of one that ended, after nothing of it was left
	States     []NodeState // of every node that is up
	Operations []Operation // of clients on groups, the groups that a run begins with included
	Wire       *Wire
	Settle     *Settle
}

// Life is what the books of one life of a node say.
type Life struct {
	Node     string
	Number   int // from 1 on
	Running  int // searches that have not returned
	Permits  []wlm.GroupPermits
	Stats    []wlm.GroupStats
	StatsErr error // why the stats cannot be read
	Outcomes []coordinator.GroupOutcomes
}

// NodeState is the state that a node has published.
type NodeState struct {
	Node  string
	State *cluster.State
}

// Operation is one command on a group that a node was given, or one read of
// all groups from the leader.
type Operation struct {
	Node string
	// Command is a *[cluster.CreateGroup], *[cluster.UpdateGroup] or
	// *[cluster.DeleteGroup]; nil for a read.
	Command cluster.Command
	// Call and Return are when it was asked for and when its answer was there.
	// Of one without an answer Return does not matter.
	Call, Return time.Duration
	// Err is the answer where it is a refusal. Of a *[cluster.Error] that is not
	// of kind [cluster.OutcomeUnknown] it is sure that nothing was done; of
	// every other error it is not known. One without an answer has such an
	// error.
	Err    error
	Group  *cluster.Group   // that a creation or an update answered with; nil: not known
	Groups []*cluster.Group // that a read answered with
}

// Wire is what a search of everything that nodes sent one another found.
type Wire struct {
	Sightings uint64 // of canaries
	First     string // where the first one was
}

// Settle is how the cluster settled after the last fault.
type Settle struct {
	Bound time.Duration
	Took  time.Duration // until it had settled, or was given up
	Err   error         // what was missing when the bound was over; nil: it settled
}
