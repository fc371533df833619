package world

import (
	"context"
	"errors"
	"fmt"
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

// scroll is what the client of a search with pages has to ask for the next one.
type scroll struct {
	id   string
	keep time.Duration
}

// scrolls are those of the searches of steps, by their ids.
type scrolls struct {
	mu sync.Mutex
	of map[string]scroll
}

// turned keeps what an answer gave for the next page, if it did.
func (s *scrolls) turned(search string, keep time.Duration, r *coordinator.Response) {
	if r == nil || r.ScrollID == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]scroll{}
	}
	s.of[search] = scroll{id: r.ScrollID, keep: keep}
}

func (s *scrolls) look(search string) (scroll, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.of[search]
	return one, ok
}

// paged makes a search with pages, or the next page of one, or one of a point in
// time of a request, and returns the search whose pages they are. What no
// answer has made possible yet is an error.
func (w *world) paged(s *scenario.Search, r *coordinator.Request) (of string, err error) {
	if s.Pit != "" {
		var known bool
		if r.PointID, known = w.points.look(s.Pit); !known {
			return "", fmt.Errorf("open_pit %s has not been answered with a point in time", s.Pit)
		}
	}
	if s.PageOf == "" {
		r.Scroll = time.Duration(s.Scroll)
		return s.ID, nil
	}
	before, ok := w.scrolls.look(s.PageOf)
	if !ok {
		return "", fmt.Errorf("search %s has not been answered with a scroll id", s.PageOf)
	}
	r.ScrollID, r.Scroll = before.id, before.keep
	return s.PageOf, nil
}

// seen is what a client sees of the end of a search.
func seen(r *coordinator.Response, err error) scenario.SearchAnswer {
	a := scenario.SearchAnswer{Answer: explain(err), Shards: summary(r, err)}
	if r != nil {
		a.Permit, a.TimedOut = r.Permit, r.TimedOut
	}
	return a
}

// searchStep sends the search of a step.
func (w *world) searchStep(s *scenario.Search, m *member) error {
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
	of, err := w.paged(s, &r)
	if err != nil {
		return err
	}
	x := w.send(m)
	w.tally.send()
	ctx, stop := context.WithCancel(w.principal(s.User, w.file.Users[s.User].Roles))
	client, leave := context.WithCancel(w.ctx)
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
			w.scrolls.turned(of, r.Scroll, response)
			answer = seen(response, err)
			return answer.Answer
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
	return nil
}

// multiSearchStep sends the searches of a step as one request. For the promises
// and the counts each of them is a search of its own.
func (w *world) multiSearchStep(s *scenario.MultiSearch, m *member) {
	x := w.send(m)
	roles := w.file.Users[s.User].Roles
	ctx := w.principal(s.User, roles)
	parts := w.parts(s, m)
	for i := range parts {
		w.tally.send()
		w.event(history.Event{Kind: history.RequestSent, Node: x.node, Search: parts[i].ID, Detail: w.owner(s.User, roles)})
	}
	w.client(func() {
		answer := scenario.MultiAnswer{Items: make([]scenario.SearchAnswer, len(parts))}
		answer.Answer = x.deliver(m, func(l *life) scenario.Answer {
			most := s.MaxConcurrent
			if most == 0 {
				most = coordinator.ConcurrentSearches(l.node.State())
			}
			coordinator.RunEach(len(parts), most, func(i int) { answer.Items[i] = seen(l.node.Search(ctx, parts[i])) })
			return explain(nil)
		})
		for i := range parts {
			one := &answer.Items[i]
			if answer.Status == 0 { // no answer came, so none of a search
				*one = scenario.SearchAnswer{Answer: answer.Answer}
			}
			one.Node, one.Took = answer.Node, answer.Took
			w.tally.add(outcomeOf(one.Answer, false), 1, one.Took)
			w.event(history.Event{Kind: history.RequestAnswered, Node: x.node, Search: parts[i].ID, Status: one.Status, Detail: one.Error.Type})
		}
		w.answers.set(s.ID, answer)
	})
}

// parts are the searches of an msearch.
func (w *world) parts(s *scenario.MultiSearch, m *member) []coordinator.Request {
	name := s.ID
	if name == "" {
		name = w.ids.next("msearch", m.name)
	}
	one := coordinator.Request{Index: s.Index, Size: scenario.DefaultSize}
	one.ServiceTime, one.Service = serviceOf(s.ServiceTime)
	if s.Group != "" {
		one.GroupHeader = w.ids.group(s.Group)
	}
	parts := make([]coordinator.Request, s.Searches)
	for i := range parts {
		parts[i] = one
		parts[i].ID = fmt.Sprintf("%s.%d", name, i)
	}
	return parts
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
