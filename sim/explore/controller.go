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

// stage is what is executed again and again, turn by turn.
type stage interface {
	// begin starts an execution; its lanes park by themselves.
	begin()
	// settle waits until every lane is parked or waits, and says which can take
	// a turn and where they stand.
	settle() (enabled uint64, steps []step)
	// release lets a lane that can take one take a turn.
	release(lane int)
	// end brings an execution to its end, whatever is parked. whole says that
	// every lane came as far as it can.
	end(whole bool)
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

// play executes a stage once, for at most so many turns, and appends them to
// taken. whole says that no lane could take a further turn.
func play(s stage, most int, ch chooser, taken []uint8) (turns []uint8, whole bool, err error) {
	s.begin()
	last := noLane
	for {
		enabled, steps := s.settle()
		if whole = enabled == 0; whole {
			break
		}
		if len(taken) == most {
			err = fmt.Errorf("%w of %d", errTooLong, most)
			break
		}
		var next int
		next, err = ch.choose(len(taken), enabled, steps, last)
		if err != nil || next == noLane {
			break
		}
		s.release(next)
		taken, last = append(taken, uint8(next)), next
	}
	s.end(whole)
	return taken, whole, err
}

// controller lets the lanes of one node go. It runs in a bubble.
type controller struct {
	lanes   []*lane
	settled func() // called whenever all lanes are parked or wait
	free    bool   // nobody parks any more

	enabled uint64
	steps   []step // by lane, of those that are enabled
}

func newController(names []string) *controller {
	c := &controller{steps: make([]step, len(names))}
	for _, name := range names {
		c.lanes = append(c.lanes, &lane{name: name, gate: make(chan struct{}, 1)})
	}
	return c
}

func (c *controller) release(l *lane) {
	l.parked = false
	l.gate <- struct{}{}
}

// settle waits until every lane is parked or waits, and looks who can go.
func (c *controller) settle() {
	bubble.Wait()
	c.settled()
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
