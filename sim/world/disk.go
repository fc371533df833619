package world

import (
	"errors"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// errNoSpace is what a full disk answers.
var errNoSpace = errors.New("no space left on device")

// diskFault decides the fate of each operation of a member's store.
type diskFault struct {
	seed stream

	mu   sync.Mutex
	full int              // faults that keep the disk full
	slow []scenario.Range // of the faults that slow it, oldest first
	ops  uint64
}

// op is the fault function of the store. It waits under no lock.
func (d *diskFault) op(op replica.Op) error {
	if op.Kind == replica.OpRead {
		return nil
	}
	wait, full := d.fate()
	if wait > 0 {
		time.Sleep(wait)
	}
	if full && op.Kind != replica.OpDeleteLogs { // what frees space works on a full disk
		return errNoSpace
	}
	return nil
}

func (d *diskFault) fate() (wait time.Duration, full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.slow) > 0 {
		d.ops++
		from := d.seed.at(d.ops).draws()
		wait = from.between(d.slow[len(d.slow)-1])
	}
	return wait, d.full > 0
}

// fill makes the disk full until the function that it returns is called.
func (d *diskFault) fill() (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.full--
	}
}

// slowBy makes each write take longer until the function that it returns is
// called.
func (d *diskFault) slowBy(r scenario.Range) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = append(d.slow, r)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i := range d.slow {
			if d.slow[i] == r {
				d.slow = append(d.slow[:i], d.slow[i+1:]...)
				return
			}
		}
	}
}
