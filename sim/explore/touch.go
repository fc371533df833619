package explore

import "github.com/wlmsim/wlmsim/cluster/probe"

// touch is what a turn reads or changes: that of the probe, and what the
// controller's own actions do beside it.
type touch uint16

const (
	readHead  touch = 1 << (iota + 8) // the state that the next command applies to
	writeHead                         // a command
	all       touch = 1<<16 - 1       // whatever there is
)

const noLane = -1

// step is where a lane is parked, with what its next turn touches.
type step struct {
	name    string // of the step, or of the action that begins
	touches touch
	bucket  uint64 // whose permits; 0: any
	group   string // whose counters; "": any
	version uint64 // that the lane is about
	ends    int    // lane whose search the turn cancels; noLane: none
}

func stepOf(e *probe.Event) step {
	return step{name: string(e.Step), touches: touch(e.Touches), bucket: e.Bucket, group: e.Group, version: e.Version, ends: noLane}
}

// meets says whether one turn changes what the other reads or changes.
func meets(a, b, read, write touch) bool {
	return a&write != 0 && b&(read|write) != 0 || b&write != 0 && a&(read|write) != 0
}

// independent says whether two turns of different lanes may change places: the
// order cannot be told from anything that follows.
func independent(a step, la int, b step, lb int) bool {
	switch {
	case a.ends == lb || b.ends == la, a.ends != noLane && a.ends == b.ends:
		return false
	case meets(a.touches, b.touches, touch(probe.ReadState), touch(probe.WriteState)),
		meets(a.touches, b.touches, touch(probe.ReadMap), touch(probe.WriteMap)),
		meets(a.touches, b.touches, readHead, writeHead):
		return false
	case (a.bucket == b.bucket || a.bucket == 0 || b.bucket == 0) &&
		meets(a.touches, b.touches, touch(probe.ReadBucket), touch(probe.WriteBucket)):
		return false
	}
	return a.group != b.group && a.group != "" && b.group != "" || counts(a.touches) && counts(b.touches) ||
		!meets(a.touches, b.touches, touch(probe.ReadCounters), touch(probe.WriteCounters))
}

// counts says whether a turn finds counters in the map and adds to them. Two
// that do may change places: neither sees what the other added.
func counts(t touch) bool {
	const mask = touch(probe.ReadMap | probe.WriteMap | probe.ReadCounters | probe.WriteCounters)
	return t&mask == touch(probe.ReadMap|probe.WriteCounters)
}
