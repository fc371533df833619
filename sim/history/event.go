package history

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster/probe"
)

// Kinds of the events that no node reports but the world itself. All others
// are the names of steps.
const (
	// NodeStarted: a node began a life; Node, Life, and its id in Detail.
	NodeStarted = "node.started"
	// NodeCrashed: a life ended as a process that is killed; Node, Life.
	NodeCrashed = "node.crashed"
	// NodeStopped: a life ended in an orderly way; Node, Life.
	NodeStopped = "node.stopped"
	// FaultBegin and FaultEnd: a fault, as its text in Detail.
	FaultBegin = "fault.begin"
	FaultEnd   = "fault.end"
	// RequestSent: a client sends a search to Node; Search, and the client's
	// [PrincipalKey] in Detail. No two searches under way have one name.
	RequestSent = "request.sent"
	// RequestAnswered: a client has its answer, or knows that it will get
	// none; Node and Search as when it was sent, Status, 0 for no answer, and
	// the error's type in Detail, where that is known.
	RequestAnswered = "request.answered"
	// WriteBegin and WriteEnd: a client's request that is no search; Node,
	// what is asked for in Detail, and Status at the end, 0 for no answer.
	WriteBegin = "write.begin"
	WriteEnd   = "write.end"
	// LoadBegin and LoadEnd: a load, by its name in Detail.
	LoadBegin = "load.begin"
	LoadEnd   = "load.end"
	// Healed: every fault is over.
	Healed = "healed"
	// Settled: the cluster has settled.
	Settled = "settled"
)

// Event is one thing that happened. Fields that an event has nothing to say
// about are zero.
type Event struct {
	At       time.Duration // virtual time since the run began
	Seq      uint64        // place among all events, from 1 on
	Kind     string        // a step's name or one of the kinds above
	Node     string
	Life     int    // which start of the node, from 1 on
	Search   string // name of the search
	Group    string // id
	Listener string // name of the listener or subscriber
	Version  uint64 // of the state
	Bucket   uint64 // hash of the bucket's key
	Held     int    // permits in the bucket
	Limit    int    // that the search was judged by
	Status   int    // of the answer
	Detail   string // what else there is to know
}

// Of returns the event of a step that a node reached in one of its lives.
func Of(at time.Duration, life int, e probe.Event) Event {
	return Event{
		At: at, Kind: string(e.Step), Node: e.Node, Life: life, Search: e.Search, Group: e.Group, Listener: e.Listener,
		Version: e.Version, Bucket: e.Bucket, Held: e.Held, Limit: e.Limit, Detail: e.Detail,
	}
}

// String returns the event in one line for people.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v #%d", e.At, e.Seq)
	if e.Node != "" {
		b.WriteString(" " + e.Node)
		if e.Life > 0 {
			b.WriteString("(" + strconv.Itoa(e.Life) + ")")
		}
	}
	b.WriteString(" " + e.Kind)
	for _, f := range []struct{ name, value string }{
		{"search", e.Search}, {"group", e.Group}, {"listener", e.Listener}, {"version", number(e.Version)},
		{"bucket", e.bucketText()}, {"held", number(e.Held)}, {"limit", number(e.Limit)}, {"status", number(e.Status)},
	} {
		if f.value != "" {
			b.WriteString(" " + f.name + "=" + f.value)
		}
	}
	if e.Detail != "" {
		b.WriteString(" " + strconv.Quote(e.Detail))
	}
	return b.String()
}

func number[T int | uint64](v T) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprint(v)
}

func (e Event) bucketText() string {
	if e.Bucket == 0 {
		return ""
	}
	return string(appendHex(nil, e.Bucket))
}
