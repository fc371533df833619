package world

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// departures are the searches of steps whose clients may go away.
type departures struct {
	mu sync.Mutex
	of map[string]departure
}

type departure struct {
	node  string
	leave context.CancelFunc // the client: it looks at no answer any more
	stop  context.CancelFunc // the node, once it hears of that
}

func (d *departures) set(id string, one departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[string]departure{}
	}
	d.of[id] = one
}

func (d *departures) take(id string) (departure, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.of[id]
	delete(d.of, id)
	return one, ok
}

// lookups are the nested searches of a step's search: of everything in an
// index each.
func lookups(s *scenario.Search) []coordinator.Lookup {
	var made []coordinator.Lookup
	for _, index := range s.Lookups {
		made = append(made, coordinator.Lookup{Index: index, Query: []byte("{}"), ServiceTime: -1})
	}
	return made
}

// searchStep sends the search of a step.
func (w *world) searchStep(s *scenario.Search, m *member) {
	x := w.send(m)
	w.tally.send()
	ctx, stop := context.WithCancel(w.principal(s.User, w.file.Users[s.User].Roles))
	client, leave := context.WithCancel(w.ctx)
	r := coordinator.Request{
		ID: s.ID, Index: s.Index, Size: s.Size, Timeout: time.Duration(s.Timeout), AllowPartial: s.AllowPartial,
		Lookups: lookups(s),
	}
	r.ServiceTime, r.Service = serviceOf(s.ServiceTime)
	if r.ID == "" {
		r.ID = w.ids.next("search", m.name)
	}
	if s.Group != "" {
		r.GroupHeader = w.ids.group(s.Group)
	}
	if s.ID != "" {
		w.left.set(s.ID, departure{node: m.name, leave: leave, stop: stop})
	}
	w.event(history.Event{Kind: history.RequestSent, Node: x.node, Search: r.ID, Detail: w.owner(s.User, w.file.Users[s.User].Roles)})
	w.client(func() {
		defer stop()
		defer leave()
		answer := scenario.SearchAnswer{}
		answer.Answer = x.deliver(m, func(l *life) scenario.Answer {
			response, err := l.node.Search(ctx, r)
			answer.Shards = summary(response, err)
			if response != nil {
				answer.Permit, answer.TimedOut = response.Permit, response.TimedOut
			}
			return explain(err)
		})
		if client.Err() != nil {
			answer = scenario.SearchAnswer{Answer: broke(x.node, gaveUpText)}
			answer.Took = time.Since(x.sent)
		}
		w.tally.add(outcomeOf(answer.Answer, client.Err() != nil), 1, answer.Took)
		w.event(history.Event{Kind: history.RequestAnswered, Node: x.node, Search: r.ID, Status: answer.Status, Detail: answer.Error.Type})
		if !s.Unread {
			w.answers.set(s.ID, answer)
		}
	})
}

// cancelStep breaks the connection of a search's client. The node hears of it
// after the way there. A search that has its answer, or was never sent, does
// not notice.
func (w *world) cancelStep(c *scenario.Cancel) {
	d, ok := w.left.take(c.Search)
	if !ok {
		return
	}
	d.leave()
	arrival, _ := w.lines.link(d.node).send(time.Now())
	w.client(func() {
		time.Sleep(time.Until(arrival))
		d.stop()
	})
}

func asSearchError(err error) ([]coordinator.ShardFailure, bool) {
	e, ok := errors.AsType[*coordinator.SearchError](err)
	if !ok {
		return nil, false
	}
	return e.Failures, true
}

// nodesOf lists the nodes of failures, sorted, each once.
func nodesOf(failures []coordinator.ShardFailure) []string {
	var nodes []string
	for _, f := range failures {
		nodes = append(nodes, f.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
