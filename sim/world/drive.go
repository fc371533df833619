package world

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// ErrExited is the error of [Drive] when the body ended its goroutine, as
// FailNow of a test does.
var ErrExited = errors.New("the body ended its goroutine (runtime.Goexit)")

// PanicError is the error of [Drive] when the body panicked.
type PanicError struct {
	Value any
	Stack string
}

// Error returns the value and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("the body panicked: %v\n%s", e.Value, e.Stack)
}

// defaultLimit bounds the virtual time of a body.
const defaultLimit = 24 * time.Hour

// Drive is [Run] with a body: from time 0 of the file on, it runs inside the
// bubble beside the file's steps and load, with nodes that have HTTP servers
// and holds. Everything heals when both the body and the file are at their
// ends, and what is checked is what Run checks.
//
// Goroutines that the body starts must end before it returns or soon after,
// and must share no channel or timer with what is outside of the bubble. An
// error means that there is nothing to judge: besides those of Run, ErrExited,
// a *PanicError, or that the body took longer than Options.Limit; its goroutine
// is then left behind.
func Drive(f *scenario.File, o Options, body func(*Cluster)) (*Result, error) {
	o.HTTP = true
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	return runWith(f, o, body)
}

// playing is a body that runs; nil if there is none.
type playing struct {
	ended   <-chan error // why the body did not return, or nil, once
	over    bool         // it returned
	timeout *time.Timer
}

// order is something that a body wants the driver to do, which alone begins
// steps.
type order struct {
	do   func() error
	done chan error
}

// play starts the body.
func (w *world) play() *playing {
	if w.body == nil {
		return nil
	}
	ended := make(chan error, 1)
	w.orders = make(chan order)
	go func() {
		err := ErrExited
		defer func() {
			if p := recover(); p != nil {
				err = &PanicError{p, string(debug.Stack())}
			}
			ended <- err
		}()
		w.body(&Cluster{w})
		err = nil
	}()
	return &playing{ended: ended, timeout: time.NewTimer(w.options.Limit)}
}

// waitUntil waits for a time of the file, and does meanwhile what the body
// orders. A time that has passed costs nothing.
func (w *world) waitUntil(at time.Duration, b *playing) error {
	d := at - w.now()
	if d <= 0 {
		return nil
	}
	if b == nil {
		time.Sleep(d)
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return w.serve(b, func() bool { return false }, timer.C)
}

// waitForBody waits until the body has returned.
func (w *world) waitForBody(b *playing) error {
	if b == nil {
		return nil
	}
	defer b.timeout.Stop()
	return w.serve(b, func() bool { return b.over }, nil)
}

// serve does what the body orders until a time or until it is enough.
func (w *world) serve(b *playing, enough func() bool, until <-chan time.Time) error {
	for !enough() {
		select {
		case <-until:
			return nil
		case o := <-w.orders:
			o.done <- o.do()
		case err := <-b.ended:
			if err != nil {
				return err
			}
			b.over = true
		case <-b.timeout.C:
			if b.over {
				continue
			}
			return fmt.Errorf("the body has not returned after %v of virtual time", w.options.Limit)
		}
	}
	return nil
}

// Cluster is a cluster that runs in virtual time, for the body of [Drive]. Its
// methods may be called from any goroutine of the bubble.
type Cluster struct{ w *world }

// Context ends when the run is given up or at its end.
func (c *Cluster) Context() context.Context { return c.w.ctx }

// Now returns the time since time 0 of the file.
func (c *Cluster) Now() time.Duration { return c.w.now() }

// Nodes lists the names of all nodes, in order of their first start.
func (c *Cluster) Nodes() []string { return c.w.nodeNames() }

// Leader returns the name of the node that leads now, or "".
func (c *Cluster) Leader() string {
	if m := c.w.leader(); m != nil {
		return m.name
	}
	return ""
}

// Node returns the running node of a name. After a crash it is another one.
func (c *Cluster) Node(name string) (*node.Node, error) {
	l, err := c.w.up(name)
	if err != nil {
		return nil, err
	}
	return l.node, nil
}

// Client returns the machine that clients run on. It reaches nodes by their
// names.
func (c *Cluster) Client() *netsim.Host { return c.w.net.Host("client") }

// Address returns where a node's HTTP server listens, or would if it were up.
func (c *Cluster) Address(name string) (string, error) {
	m := c.w.member(name)
	if m == nil {
		return "", fmt.Errorf("there is no node %s: one of %s", name, strings.Join(c.Nodes(), ", "))
	}
	return m.host.Name() + ":" + strconv.Itoa(m.port(httpPort)), nil
}

// order has the driver do something.
func (c *Cluster) order(do func() error) error {
	o := order{do, make(chan error, 1)}
	select {
	case c.w.orders <- o:
		return <-o.done
	case <-c.w.ctx.Done():
		return errors.New("the run is at its end")
	}
}

// Begin begins a step, now, which says what to do in the words of a file; see
// [scenario.File.Then]. As in a file, it does not wait for the step's end.
// It returns the id of the step's request, if it has one. An expect step is
// [Cluster.Holds].
func (c *Cluster) Begin(text string) (id string, err error) {
	w := c.w
	err = c.order(func() error {
		at := w.now()
		next, err := w.said.Load().Then(scenario.Duration(at), text)
		if err != nil {
			return err
		}
		step := &next.Filled().Steps[len(next.Steps)-1]
		if step.Expect != nil {
			return errors.New("expect is no step of a body: ask whether the expression holds")
		}
		w.said.Store(next)
		id = step.ID()
		return w.begin(start{at: at, number: len(next.Steps) - 1, step: step})
	})
	return id, err
}

// Await waits until the request of an id has been answered, and returns the
// answer as expressions know it, such as a [scenario.SearchAnswer].
func (c *Cluster) Await(ctx context.Context, id string) (any, error) {
	return c.w.answers.await(ctx, id)
}

// Holds works out an expression at this moment. It knows what expect: of a
// file knows, and the ids of the steps that the body began.
func (c *Cluster) Holds(e scenario.Expression) (bool, error) {
	said := c.w.said.Load()
	p, err := said.Compile(e, scenario.InRun)
	if err != nil {
		return false, err
	}
	return p.Holds(said.Vars(scenario.InRun, c.w.env()))
}

// Hold parks arrivals at a step of a node until it is released; see
// [probe.Holds]. A group of the filter goes by its name.
func (c *Cluster) Hold(node string, step probe.Step, filter probe.Filter) error {
	return c.order(func() error {
		l, err := c.w.up(node)
		if err != nil {
			return err
		}
		if filter.Group != "" {
			filter.Group = c.w.ids.group(filter.Group)
		}
		c.w.event(history.Event{Kind: history.FaultBegin, Node: node, Detail: "hold " + string(step)})
		return l.node.Holds().Hold(step, filter)
	})
}

// Release lets go of what the holds of a step parked.
func (c *Cluster) Release(node string, step probe.Step) error {
	return c.order(func() error {
		if _, err := c.w.up(node); err != nil {
			return err
		}
		return c.w.release(&scenario.Release{Node: node, Step: step})
	})
}

// Group returns the id of the group of a name: the newest one's, or the first
// one's before there is any.
func (c *Cluster) Group(name string) string { return c.w.ids.group(name) }

// Stats, Outcomes and Permits are what expressions know by these names: of a
// group by its name, on a node.
func (c *Cluster) Stats(node, group string) (scenario.Stats, error) { return c.w.statsOf(node, group) }

// Outcomes tells how the searches of a node's coordinator ended; see
// [Cluster.Stats].
func (c *Cluster) Outcomes(node, group string) (scenario.Outcomes, error) {
	return c.w.outcomesOf(node, group)
}

// Permits tells what is held of a group on a node; see [Cluster.Stats].
func (c *Cluster) Permits(node, group string) (scenario.Permits, error) {
	return c.w.permitsOf(node, group)
}
