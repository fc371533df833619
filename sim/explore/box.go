package explore

import (
	"encoding/binary"
	"fmt"

	"github.com/wlmsim/wlmsim/sim/check"
)

// Flight is an exploration under way, for who outlives its process: a panic of
// a goroutine of the explored nodes ends that, and no one in it can tell.
type Flight struct {
	Scenario, File, Profile, Strategy string
	Set                               []string
	Lanes                             []string
}

// BoxSize is how many bytes the turns of an execution take in the memory that
// [Options.Box] gives.
const BoxSize = boxHead + MaxTurns

// boxHead is the number of turns, before a byte for the lane of each.
const boxHead = 4

// boxed notes each turn before it is taken.
type boxed struct {
	chooser
	box []byte
}

// choose implements [chooser].
func (b *boxed) choose(turn int, enabled uint64, steps []step, last int) (int, error) {
	next, err := b.chooser.choose(turn, enabled, steps, last)
	if err == nil && next != noLane {
		b.box[boxHead+turn] = byte(next)
		binary.NativeEndian.PutUint32(b.box, uint32(turn+1))
	}
	return next, err
}

// watched makes the table note the turns of each execution, if that is asked
// for.
func (t *table) watched(o Options) {
	if o.Box == nil {
		return
	}
	box, run := o.Box(Flight{t.file.Name, o.Path, t.file.Profile, o.Strategy, o.Set, t.lanes}), t.run
	t.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
		binary.NativeEndian.PutUint32(box, 0)
		return run(&boxed{c, box}, taken, traced)
	}
}

// Result is what came of a flight whose process died: the schedule under way,
// from its box, and why.
func (f Flight) Result(box []byte, why string) *Result {
	turns := box[boxHead:][:min(binary.NativeEndian.Uint32(box), MaxTurns)]
	s := Schedule{}
	for _, lane := range turns {
		if int(lane) < len(f.Lanes) {
			s = append(s, f.Lanes[lane])
		}
	}
	o := Options{Strategy: Replay, Schedule: s, Path: f.File, Set: f.Set}
	return &Result{
		Scenario: f.Scenario, File: f.File, Profile: f.Profile, Strategy: f.Strategy, Outcomes: []Outcome{},
		Checks: []Check{{
			Result:   check.Result{Name: "explore", Verdict: check.Broken, Message: fmt.Sprintf("a goroutine of the explored nodes panicked: %s", why)},
			Schedule: s.String(),
		}},
		Verdict: check.Broken, Repeat: repeat(&o, f.Profile), lanes: f.Lanes,
	}
}
