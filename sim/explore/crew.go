package explore

import (
	"errors"
	"slices"
)

// part is a part of a row that one worker has executed, executes or will.
type part struct {
	row     row      // what is left of it; nil: nothing
	records []record // of what was executed, in order
	state   partState
	ended   error // of the worker, if its last record spoilt it or what came next
}

type partState uint8

const (
	partWaits partState = iota
	partRuns
	partDone
)

// execute executes the first schedules of a part, and says whether the worker
// can go on. spare is memory for the records.
func (p *part) execute(t *table, most int) bool {
	for len(p.records) < most && p.row != nil {
		n := len(p.records)
		records := slices.Grow(p.records, 1)[:n+1]
		t.try(p.row.chooser(), &records[n])
		p.records = records
		switch {
		case records[n].spoilt():
			p.row = nil
			return false
		case !p.row.next():
			p.row = nil
		}
	}
	return true
}

// crew is workers that execute the schedules of one exploration side by side,
// each with nodes of its own. What it finds, and in which order, is what one
// worker would find: the row is cut into parts that are taken in in order, and
// the rest of what was executed is thrown away.
//
// The row's owner, who calls work and close, hands parts out and takes them in;
// workers share nothing with it or with one another but the channels, which
// belong to no bubble.
type crew struct {
	hire func(number int) (*table, error) // returns what another worker works with
	most int                              // workers
	at   int                              // schedules that a worker executes before it reports

	free  []int // numbers of workers that are not there
	alive int
	busy  int // workers that have a part
	jobs  chan *part
	back  chan *part // parts of which something was executed
	left  chan departure
	spare [][]record
}

// departure is the end of a worker.
type departure struct {
	number int
	part   *part // that it could not go on after, or nil
	err    error
}

func newCrew(most, at int, hire func(int) (*table, error)) *crew {
	c := &crew{hire: hire, most: most, at: at, jobs: make(chan *part, most), back: make(chan *part, most), left: make(chan departure, most)}
	for n := range most {
		c.free = append(c.free, most-1-n)
	}
	return c
}

// serve is the life of a worker.
func (c *crew) serve(number int, t *table) {
	var last *part
	err := t.within(func() error {
		for p := range c.jobs {
			last = p
			if !p.execute(t, c.at) {
				return nil
			}
			last = nil
			c.back <- p
		}
		return nil
	})
	c.left <- departure{number, last, err}
}

// work executes a row until take wants no more of the records, and says whether
// it took all of them.
func (c *crew) work(r row, take func(*record) (more bool, err error)) (all bool, err error) {
	parts := []*part{{row: r}}
	for more := true; more && err == nil && len(parts) > 0; {
		var p *part
		if parts, err = c.handOut(parts); err == nil {
			p, err = c.report()
		}
		if err == nil {
			parts, more, err = c.takeFirst(reported(parts, p), take)
		}
	}
	for c.busy > 0 { // what they find is not asked for
		_, ended := c.report()
		err = errors.Join(err, ended)
	}
	return len(parts) == 0, err
}

// backlog bounds the parts that are executed and cannot be taken in yet, by
// worker: a worker that the processor does not get to may hold them all up.
const backlog = 64

// handOut gives parts to workers, those first that come first.
func (c *crew) handOut(parts []*part) ([]*part, error) {
	ahead := 0
	for _, p := range parts {
		if p.state == partDone {
			ahead++
		}
	}
	parts = c.cut(parts)
	for i, p := range parts {
		if c.busy == c.most || ahead > backlog*c.most && i > 0 {
			break
		}
		if p.state != partWaits {
			continue
		}
		if c.busy == c.alive {
			if err := c.add(); err != nil {
				return parts, err
			}
		}
		if n := len(c.spare); n > 0 {
			p.records, c.spare = c.spare[n-1], c.spare[:n-1]
		}
		p.state = partRuns
		c.busy++
		c.jobs <- p
	}
	return parts, nil
}

// cut makes as many parts that wait as the workers can need soon, if the row has
// them.
func (c *crew) cut(parts []*part) []*part {
	wanted := 2 * c.most
	for _, p := range parts {
		if p.state == partWaits {
			wanted--
		}
	}
	for i := len(parts) - 1; i >= 0 && wanted > 0; {
		var rest row
		if parts[i].state == partWaits {
			rest = parts[i].row.split()
		}
		if rest == nil {
			i--
			continue
		}
		parts = slices.Insert(parts, i+1, &part{row: rest})
		wanted--
	}
	return parts
}

// add hires a worker.
func (c *crew) add() error {
	number := c.free[len(c.free)-1]
	t, err := c.hire(number)
	if err != nil {
		return err
	}
	c.free = c.free[:len(c.free)-1]
	c.alive++
	go c.serve(number, t)
	return nil
}

// report waits for a part of which something was executed.
func (c *crew) report() (*part, error) {
	select {
	case p := <-c.back:
		c.busy--
		return p, nil
	case d := <-c.left:
		c.departed(d)
		if d.part == nil { // it could not even begin
			select {
			case <-c.jobs:
				c.busy--
			default: // another one has the part
			}
			return nil, d.err
		}
		c.busy--
		d.part.row, d.part.ended = nil, d.err
		return d.part, nil
	}
}

func (c *crew) departed(d departure) {
	c.alive--
	c.free = append(c.free, d.number)
}

// reported puts what is left of a part in its place.
func reported(parts []*part, p *part) []*part {
	p.state = partDone
	if p.row == nil {
		return parts
	}
	rest := &part{row: p.row}
	p.row = nil
	return slices.Insert(parts, slices.Index(parts, p)+1, rest)
}

// takeFirst has the records taken in of those parts that nothing comes before,
// and returns the other parts.
func (c *crew) takeFirst(parts []*part, take func(*record) (bool, error)) (left []*part, more bool, err error) {
	for more = true; len(parts) > 0 && parts[0].state == partDone; parts = parts[1:] {
		p := parts[0]
		for i := range p.records {
			beyond := i < len(p.records)-1 || p.ended != nil && !p.records[i].spoilt()
			if more, err = take(&p.records[i]); err != nil || !more && beyond {
				return parts, more, err
			}
		}
		if p.ended != nil {
			return parts, more, p.ended
		}
		if len(c.spare) < 4*c.most {
			c.spare = append(c.spare, p.records[:0])
		}
		if !more {
			return parts[1:], false, nil
		}
	}
	return parts, more, nil
}

// close ends the workers and returns how their bubbles ended.
func (c *crew) close() error {
	close(c.jobs)
	var errs []error
	for c.alive > 0 {
		d := <-c.left
		c.departed(d)
		errs = append(errs, d.err)
	}
	return errors.Join(errs...)
}
