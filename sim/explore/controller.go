package explore

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/wlmsim/wlmsim/sim/bubble"
)

// maxLanes bounds the lanes of an exploration: sets of lanes are bits.
const maxLanes = 64

// lane is one thread of control that the controller lets go turn by turn. Its
// goroutine writes the fields up to gate while it runs and the controller while
// it is parked; the bubble's settling stands between them.
type lane struct {
	name   string
	at     step // valid while parked
	parked bool
	gate   chan struct{}
}

// park waits until the controller gives the lane its next turn.
func (l *lane) park(s step) {
	l.at, l.parked = s, true
	<-l.gate
}

// subject is what is executed again and again.
type subject interface {
	// begin starts an execution; its lanes park by themselves.
	begin()
	// settled is called after each turn and after begin, when all are parked or
	// wait.
	settled()
	// end brings an execution to its end, whatever is parked. judged says that
	// every lane came as far as it can.
	end(judged bool)
}

// controller executes schedules of a subject. It runs in a bubble.
type controller struct {
	lanes   []*lane
	subject subject
	most    int  // turns of one schedule
	free    bool // nobody parks any more

	enabled uint64
	steps   []step // by lane, of those that are enabled
}

func newController(names []string, most int) *controller {
	c := &controller{most: most, steps: make([]step, len(names))}
	for _, name := range names {
		c.lanes = append(c.lanes, &lane{name: name, gate: make(chan struct{}, 1)})
	}
	return c
}

// chooser decides who takes the next turn.
type chooser interface {
	// choose returns the lane of the next turn, one that is enabled, or noLane
	// to cut the execution short. last is the lane of the turn before, or
	// noLane.
	choose(turn int, enabled uint64, steps []step, last int) (int, error)
}

// errTooLong means that an execution met the bound on turns.
var errTooLong = errors.New("an order has more turns than the bound")

// execute runs one execution and appends its turns to taken. whole says that no
// lane could take a further turn.
func (c *controller) execute(ch chooser, taken []uint8) (turns []uint8, whole bool, err error) {
	c.free = false
	c.subject.begin()
	c.settle()
	last := noLane
	for c.enabled != 0 {
		if len(taken) == c.most {
			err = fmt.Errorf("%w of %d", errTooLong, c.most)
			break
		}
		var next int
		next, err = ch.choose(len(taken), c.enabled, c.steps, last)
		if err != nil || next == noLane {
			break
		}
		c.release(c.lanes[next])
		c.settle()
		taken, last = append(taken, uint8(next)), next
	}
	whole = c.enabled == 0
	c.subject.end(whole)
	return taken, whole, err
}

func (c *controller) release(l *lane) {
	l.parked = false
	l.gate <- struct{}{}
}

// settle waits until every lane is parked or waits, and looks who can go.
func (c *controller) settle() {
	bubble.Wait()
	c.subject.settled()
	c.enabled = 0
	for i, l := range c.lanes {
		if l.parked {
			c.enabled |= 1 << i
			c.steps[i] = l.at
		}
	}
}

// letAll lets every lane run to its end, one after the other.
func (c *controller) letAll() {
	c.free = true
	for again := true; again; {
		again = false
		for _, l := range c.lanes {
			if l.parked {
				c.release(l)
				c.settle()
				again = true
			}
		}
	}
}

// first returns the first lane of a set; the set is not empty.
func first(set uint64) int { return bits.TrailingZeros64(set) }

// onward returns the lane that goes on without a preemption, within a set that
// is not empty.
func onward(set uint64, last int) int {
	if last != noLane && set&(1<<last) != 0 {
		return last
	}
	return first(set)
}

// preempts says whether a turn of next after one of last is a preemption.
func preempts(enabled uint64, last, next int) bool {
	return last != noLane && next != last && enabled&(1<<last) != 0
}
