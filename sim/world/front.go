package world

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/wlm"
)

// front stands between a node's HTTP API and the node. It sees what clients
// that the world knows nothing of ask for, so that the checks know it as they
// know the requests of steps.
type front struct {
	rest.Cluster
	search rest.Searcher
	life   *life

	mu      sync.Mutex
	running map[string]bool // names of the searches under way
}

// front returns what the HTTP API of a life talks to.
func (l *life) front(c rest.Cluster, s rest.Searcher) (rest.Cluster, rest.Searcher) {
	f := &front{Cluster: c, search: s, life: l, running: map[string]bool{}}
	return f, f
}

// Propose implements [rest.Cluster].
func (f *front) Propose(ctx context.Context, c cluster.Command) (*rest.Result, error) {
	w, call := f.life.m.w, time.Now()
	made, creates := c.(*cluster.CreateGroup)
	if creates {
		w.ids.foreign(made.Group.Name, made.Group.ID)
	}
	result, err := f.Cluster.Propose(ctx, c)
	if creates && err != nil && !unknown(err) {
		w.ids.forget(made.Group.Name, made.Group.ID)
	}
	w.record.proposed(f.life.m.name, call, c, result, err)
	return result, err
}

// Groups implements [rest.Cluster].
func (f *front) Groups(ctx context.Context) ([]*cluster.Group, error) {
	call := time.Now()
	groups, err := f.Cluster.Groups(ctx)
	f.life.m.w.record.operation(call, check.Operation{Node: f.life.m.name, Groups: groups, Err: err})
	return groups, err
}

// Search implements [rest.Searcher]. It gives each search under way a name of
// its own: that of the client, with a number if the client has another one of
// that name.
func (f *front) Search(ctx context.Context, r coordinator.Request) (*coordinator.Response, error) {
	w, node := f.life.m.w, f.life.m.name
	r.ID = f.begin(r.ID)
	defer f.end(r.ID)
	p, known := wlm.PrincipalFrom(ctx)
	if roles := w.file.Users[p.User].Roles; known && len(roles) > 0 {
		p.Roles = slices.Concat(roles, p.Roles)
		ctx = wlm.WithPrincipal(ctx, p)
	}
	sent := time.Now()
	w.tally.send()
	w.event(history.Event{Kind: history.RequestSent, Node: node, Search: r.ID, Detail: w.owner(p.User, p.Roles)})
	response, err := f.search.Search(ctx, r)
	answer := explain(err)
	left := ctx.Err() != nil
	if left || f.life.isGone() {
		answer = broke(node, resetText)
	}
	w.tally.add(outcomeOf(answer, left), 1, time.Since(sent))
	w.event(history.Event{Kind: history.RequestAnswered, Node: node, Search: r.ID, Status: answer.Status, Detail: answer.Error.Type})
	return response, err
}

// begin names a search.
func (f *front) begin(id string) string {
	if id == "" {
		return f.life.m.w.ids.next("search", f.life.m.name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := id
	for n := 2; f.running[name]; n++ {
		name = id + "#" + strconv.Itoa(n)
	}
	f.running[name] = true
	return name
}

func (f *front) end(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, name)
}
