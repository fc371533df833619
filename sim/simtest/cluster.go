package simtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// Patience is how much virtual time [Cluster.Ask] and [Cluster.AwaitHeld] wait
// before they fail the test: longer than any request of a sound cluster takes,
// with the defaults.
const Patience = 10 * time.Minute

// Cluster is a running cluster. Its methods may be called from any goroutine of
// the bubble; those that fail the test end the goroutine that called them, so
// call them from the one that Run called. The context, the nodes' names, the
// leader and what else needs no test are those of the embedded cluster.
type Cluster struct {
	*world.Cluster
	t TB

	mu         sync.Mutex
	transports []*http.Transport
}

// check ends the test if something that it asked for was not possible.
func (c *Cluster) check(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Errorf("simtest: %v, at %v", err, c.Now())
		c.t.FailNow()
	}
}

// URL returns the base URL of a node, such as http://m1:9200. It changes only
// when the node comes back at another address. A name that no node has ends the
// test.
func (c *Cluster) URL(node string) string {
	c.t.Helper()
	address, err := c.Address(node)
	c.check(err)
	return "http://" + address
}

// URLs returns the base URLs of all nodes, the managers first.
func (c *Cluster) URLs() []string {
	c.t.Helper()
	var urls []string
	for _, name := range c.Nodes() {
		urls = append(urls, c.URL(name))
	}
	return urls
}

// Transport returns a new transport that dials nodes over the simulated
// network, for the client under test. It may be changed before its first use.
// Run closes its idle connections in the end.
func (c *Cluster) Transport() *http.Transport {
	t := c.Cluster.Client().HTTPTransport()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transports = append(c.transports, t)
	return t
}

func (c *Cluster) closeTransports() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}

// Client returns a plain client with a transport of its own.
func (c *Cluster) Client() *http.Client { return &http.Client{Transport: c.Transport()} }

// Dial connects to an address of [Cluster.Address], for a client that wants a
// dial function. The network must be tcp.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return c.Cluster.Client().DialContext(ctx, network, address)
}

// Node returns the running node of a name; see package sim/node. It ends the
// test if the node is down.
func (c *Cluster) Node(name string) *node.Node {
	c.t.Helper()
	n, err := c.Cluster.Node(name)
	c.check(err)
	return n
}

// Begin begins a step, now, in the words of a scenario file, such as
//
//	partition: {sides: [[m1], rest], for: 20s}
//
// and does not wait for its end. `wlmsim steps` lists all steps.
func (c *Cluster) Begin(step string) {
	c.t.Helper()
	_, err := c.Cluster.Begin(step)
	c.check(err)
}

// Ask sends a request in the words of a scenario file, such as
//
//	put_group: {id: put, name: late, resource_limits: {cpu: 0.3}, resiliency_mode: soft}
//
// and returns what its client saw. The request needs an id, by which
// [Cluster.Expect] knows the whole answer.
func (c *Cluster) Ask(request string) scenario.Answer {
	c.t.Helper()
	id, err := c.Cluster.Begin(request)
	c.check(err)
	if id == "" {
		c.check(errors.New("the step is no request with an id: " + request))
	}
	ctx, cancel := context.WithTimeout(c.Context(), Patience)
	defer cancel()
	answer, err := c.Await(ctx, id)
	c.check(err)
	return common(answer)
}

// common is what all answers have.
func common(answer any) scenario.Answer {
	switch a := answer.(type) {
	case scenario.SearchAnswer:
		return a.Answer
	case scenario.MultiAnswer:
		return a.Answer
	case scenario.PointAnswer:
		return a.Answer
	case scenario.GroupsAnswer:
		return a.Answer
	case scenario.StatsAnswer:
		return a.Answer
	}
	return answer.(scenario.Answer)
}

// Expect holds expressions to be true at this moment. They know what expect: of
// a scenario file knows, and the ids of requests that the test made. One that
// is not true fails the test, which goes on; one that cannot be worked out ends
// it.
func (c *Cluster) Expect(expressions ...scenario.Expression) {
	c.t.Helper()
	for _, e := range expressions {
		holds, err := c.Holds(e)
		c.check(err)
		if !holds {
			c.t.Errorf("simtest: not true at %v: %s", c.Now(), e)
		}
	}
}

// Hold opens a window: from now on it parks every arrival at a step of a node
// that the filter lets through, until [Cluster.Release] or the end of the test's
// function. A group of the filter goes by its name.
func (c *Cluster) Hold(node string, step probe.Step, filter probe.Filter) {
	c.t.Helper()
	c.check(c.Cluster.Hold(node, step, filter))
}

// AwaitHeld waits until n arrivals are parked at a step that is held, and
// returns what is parked, in order of arrival.
func (c *Cluster) AwaitHeld(node string, step probe.Step, n int) []probe.Event {
	c.t.Helper()
	holds := c.Node(node).Holds()
	ctx, cancel := context.WithTimeout(c.Context(), Patience)
	defer cancel()
	if !holds.Await(ctx.Done(), step, n) {
		c.check(errors.New("not as many arrivals as awaited are held at " + string(step) + " of " + node))
	}
	return holds.Parked(step)
}

// Release closes all windows of a step of a node and lets what is parked go on.
func (c *Cluster) Release(node string, step probe.Step) {
	c.t.Helper()
	c.check(c.Cluster.Release(node, step))
}

// Stats returns the counters of a group, by its name, on a node; "" for a node
// means summed over all that are up. Those of a group that has none read 0.
func (c *Cluster) Stats(node, group string) scenario.Stats {
	c.t.Helper()
	s, err := c.Cluster.Stats(node, group)
	c.check(err)
	return s
}

// Permits returns what is held of a group, by its name, on a node.
func (c *Cluster) Permits(node, group string) scenario.Permits {
	c.t.Helper()
	p, err := c.Cluster.Permits(node, group)
	c.check(err)
	return p
}

// Outcomes tells how the searches of a group, by its name, ended on a node; ""
// for a group means all.
func (c *Cluster) Outcomes(node, group string) scenario.Outcomes {
	c.t.Helper()
	o, err := c.Cluster.Outcomes(node, group)
	c.check(err)
	return o
}
