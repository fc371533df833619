package probe

// Touch is a bit set of what a step reads or changes, so that an explorer can
// tell which orders cannot differ.
type Touch uint8

// What a step can touch.
const (
	ReadState Touch = 1 << iota
	WriteState
	ReadBucket // the bucket of Event.Bucket
	WriteBucket
	ReadCounters // the counters of Event.Group
	WriteCounters
	ReadMap // the map from group to counters
	WriteMap
)

// Event is one arrival at a step. Fields that a step has nothing to say about
// are zero. An Event names no user.
type Event struct {
	Step     Step
	Node     string
	Group    string // group id
	Search   string // the search's X-Opaque-Id, or what the coordinator numbered it
	Listener string // name of the listener or subscriber
	Version  uint64 // state version
	Bucket   uint64 // hash of the bucket's key
	Held     int    // permits in the bucket, itself included, where that is known
	Limit    int    // the limit that the search was judged by
	Detail   string // what else a reader of the history wants to know
	Touches  Touch  // what happens between this step and the actor's next one
}

// Hook sees the events of a node. Reach may block; it is called on the
// goroutine that reached the step, never under a lock.
type Hook interface {
	Reach(Event)
}

// HookFunc makes a function a [Hook].
type HookFunc func(Event)

// Reach calls f.
func (f HookFunc) Reach(e Event) { f(e) }

// Probe hands the events of one node to its hooks. The nil Probe does nothing.
type Probe struct {
	node  string
	hooks []Hook
}

// New returns the probe of a node, or nil when there are no hooks.
func New(node string, hooks ...Hook) *Probe {
	if len(hooks) == 0 {
		return nil
	}
	return &Probe{node: node, hooks: hooks}
}

// At tells every hook that the node reached a step; it fills in the node.
func (p *Probe) At(e Event) {
	if p != nil {
		p.reach(e)
	}
}

func (p *Probe) reach(e Event) {
	e.Node = p.node
	for _, h := range p.hooks {
		h.Reach(e)
	}
}

// On says whether anybody listens, for callers that would have to work to
// describe an event.
func (p *Probe) On() bool { return p != nil }
