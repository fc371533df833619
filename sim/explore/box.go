package explore

import (
	"encoding/binary"
	"regexp"
	"strconv"

	"github.com/wlmsim/wlmsim/sim/bubble"
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

// BoxSize is how many bytes the turns of the executions under way take in the
// memory that [Options.Box] gives.
const BoxSize = MaxWorkers * pageSize

// A box has a page for each worker: the number of executions that it began, the
// number of turns of the last one, the number of the bubble that this is in,
// whether it is under way, and a byte for the lane of each turn.
const (
	pageTurns  = 8
	pageBubble = 12
	pageUnder  = 20
	pageHead   = 24
	pageSize   = pageHead + MaxTurns
)

// page is a worker's part of a box.
type page []byte

func pageOf(box []byte, worker int) page { return box[worker*pageSize:][:pageSize] }

func (p page) begun() uint64  { return binary.NativeEndian.Uint64(p) }
func (p page) turns() uint32  { return binary.NativeEndian.Uint32(p[pageTurns:]) }
func (p page) bubble() uint64 { return binary.NativeEndian.Uint64(p[pageBubble:]) }
func (p page) under() bool    { return p[pageUnder] != 0 }

func (p page) setBubble(id uint64) { binary.NativeEndian.PutUint64(p[pageBubble:], id) }

// begin notes that an execution begins.
func (p page) begin() {
	binary.NativeEndian.PutUint32(p[pageTurns:], 0)
	binary.NativeEndian.PutUint64(p, p.begun()+1)
	p[pageUnder] = 1
}

// take notes a turn.
func (p page) take(turn, lane int) {
	p[pageHead+turn] = byte(lane)
	binary.NativeEndian.PutUint32(p[pageTurns:], uint32(turn+1))
}

// Begun returns how many executions were begun, and how many turns those have
// that were begun last, over all workers. Who looks at both now and then sees
// whether an exploration moves on.
func Begun(box []byte) (executions uint64, turns uint32) {
	for worker := range MaxWorkers {
		p := pageOf(box, worker)
		executions, turns = executions+p.begun(), turns+p.turns()
	}
	return executions, turns
}

// boxed notes each turn before it is taken.
type boxed struct {
	chooser
	page page
}

// choose implements [chooser].
func (b *boxed) choose(turn int, enabled uint64, steps []step, last int) (int, error) {
	if turn == 0 && b.page.bubble() == 0 {
		b.page.setBubble(bubble.ID())
	}
	next, err := b.chooser.choose(turn, enabled, steps, last)
	if err == nil && next != noLane {
		b.page.take(turn, next)
	}
	return next, err
}

// noted makes the table note the turns of each execution on a page.
func (t *table) noted(p page) {
	within, run := t.within, t.run
	one := false // bubble, for all executions
	t.within = func(f func() error) error {
		return within(func() error {
			id := bubble.ID()
			one = id != 0
			p.setBubble(id)
			return f()
		})
	}
	t.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
		if !one {
			p.setBubble(0)
		}
		p.begin()
		defer func() { p[pageUnder] = 0 }()
		return run(&boxed{c, p}, taken, traced)
	}
}

// flight is the exploration of the options.
func (t *table) flight(o *Options) Flight {
	return Flight{t.file.Name, o.Path, t.file.Profile, o.Strategy, o.Set, t.lanes, repeat(o, t.file.Profile)}
}

// inBubble finds the bubbles of goroutines in what a process writes when it dies.
var inBubble = regexp.MustCompile(`synctest bubble (\d+)`)

// guilty returns the page of who brought the process down: of those whose
// executions are under way, or else of those that began any, the one in whose
// bubble the first goroutine is that last names, or else the first one; nil if
// nothing was begun.
func guilty(box []byte, last string) page {
	var under, begun []page
	for worker := range MaxWorkers {
		p := pageOf(box, worker)
		if p.under() {
			under = append(under, p)
		}
		if p.begun() > 0 {
			begun = append(begun, p)
		}
	}
	if len(under) > 0 {
		begun = under
	}
	for _, m := range inBubble.FindAllStringSubmatch(last, -1) {
		for _, p := range begun {
			if m[1] == strconv.FormatUint(p.bubble(), 10) {
				return p
			}
		}
	}
	if len(begun) == 0 {
		return nil
	}
	return begun[0]
}

// Result is what came of a flight whose process died or took no further turn:
// a verdict, why, and the schedule under way, from its box, if there was one. Of
// several the words tell that the process wrote last, which name the bubble of a
// goroutine that panicked; they may be "".
func (f Flight) Result(box []byte, v check.Verdict, why, words string) *Result {
	r := &Result{
		Scenario: f.Scenario, File: f.File, Profile: f.Profile, Strategy: f.Strategy, Outcomes: []Outcome{},
		Checks:  []Check{{Result: check.Result{Name: "explore", Verdict: v, Message: why}}},
		Verdict: v, Repeat: f.Repeat, lanes: f.Lanes,
	}
	p := guilty(box, words)
	if p == nil {
		return r
	}
	s := Schedule{}
	for _, lane := range p[pageHead:][:min(p.turns(), MaxTurns)] {
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
