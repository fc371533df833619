package explore

import (
	"encoding/binary"

	"github.com/wlmsim/wlmsim/sim/check"
)

// Flight is an exploration under way, for who outlives its process: a panic of
// a goroutine of the explored nodes ends that, and no one in it can tell.
type Flight struct {
	Scenario, File, Profile, Strategy string
	Set                               []string
	Lanes                             []string
	Repeat                            string // the command that explores again
}

// BoxSize is how many bytes the turns of an execution take in the memory that
// [Options.Box] gives.
const BoxSize = boxHead + MaxTurns

// A box has the number of executions that were begun, the number of turns of
// the one under way, and a byte for the lane of each turn.
const (
	boxTurns = 8
	boxHead  = boxTurns + 4
)

// Begun returns how many executions were begun, from the beginning of a box.
// Who looks at it now and then, and at the turns of the one under way, sees
// whether an exploration moves on.
func Begun(box []byte) (executions uint64, turns uint32) {
	return binary.NativeEndian.Uint64(box), binary.NativeEndian.Uint32(box[boxTurns:])
}

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
		binary.NativeEndian.PutUint32(b.box[boxTurns:], uint32(turn+1))
	}
	return next, err
}

// watched makes the table note the turns of each execution, if that is asked
// for.
func (t *table) watched(o Options) {
	if o.Box == nil {
		return
	}
	box, run := o.Box(Flight{t.file.Name, o.Path, t.file.Profile, o.Strategy, o.Set, t.lanes, repeat(&o, t.file.Profile)}), t.run
	begun := uint64(0)
	t.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
		begun++
		binary.NativeEndian.PutUint64(box, begun)
		binary.NativeEndian.PutUint32(box[boxTurns:], 0)
		return run(&boxed{c, box}, taken, traced)
	}
}

// Result is what came of a flight whose process died or took no further turn:
// a verdict, why, and the schedule under way, from its box, if there was one.
func (f Flight) Result(box []byte, v check.Verdict, why string) *Result {
	r := &Result{
		Scenario: f.Scenario, File: f.File, Profile: f.Profile, Strategy: f.Strategy, Outcomes: []Outcome{},
		Checks:  []Check{{Result: check.Result{Name: "explore", Verdict: v, Message: why}}},
		Verdict: v, Repeat: f.Repeat, lanes: f.Lanes,
	}
	begun, taken := Begun(box)
	if begun == 0 {
		return r
	}
	s := Schedule{}
	for _, lane := range box[boxHead:][:min(taken, MaxTurns)] {
		if int(lane) < len(f.Lanes) {
			s = append(s, f.Lanes[lane])
		}
	}
	r.Checks[0].Schedule = s.String()
	r.Repeat = repeat(&Options{Strategy: Replay, Schedule: s, Path: f.File, Set: f.Set}, f.Profile)
	return r
}

// Command is the command that explores with the options.
func (o Options) Command() string {
	if o.Schedule != nil {
		o.Strategy = Replay
	}
	return repeat(&o, o.Profile)
}
