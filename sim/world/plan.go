package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Plan is a load as decisions alone: when its searches are sent, what they are,
// which node each attempt goes to, and how long a client waits in between. It
// reads no clock and sends nothing, so that another world than this package's
// can offer the same load. All but Next may be called from several goroutines.
type Plan struct {
	load   load
	next   func() (time.Duration, bool)
	number uint64
}

// Planned is a search of a plan.
type Planned struct {
	Number      uint64        // from 0
	At          time.Duration // when it is sent, from the start of the load; 0 for a closed load
	User        string        // with Roles: the principal; none if both are empty
	Roles       []string
	Index       string
	ServiceTime time.Duration // of each shard; -1: each draws its own
	// Service is what a shard draws from; the zero value: its index's
	// distribution.
	Service cluster.ServiceTime
}

// NewPlan returns the plan of a load of a filled file that came from
// [scenario.Read]. It draws what a run with the seed draws.
func NewPlan(f *scenario.File, spec *scenario.Load, seed uint64) *Plan {
	w := &world{file: f, seed: stream(seed).named("wlmsim")}
	p := &Plan{load: load{w: w, spec: spec, seed: w.seed.named("load", spec.Name)}}
	p.load.via = newBalancer(&spec.Via, NodeNames(f), p.load.seed.named("via"))
	if spec.Arrive.Closed == 0 {
		p.next = p.load.arrivals()
	}
	return p
}

// NodeNames are the nodes that a filled file starts with: the managers, then
// the data nodes.
func NodeNames(f *scenario.File) []string {
	var names []string
	for _, role := range []struct {
		letter string
		count  int
	}{{"m", f.Cluster.Managers}, {"d", f.Cluster.Data}} {
		for i := range role.count {
			names = append(names, fmt.Sprintf("%s%d", role.letter, i+1))
		}
	}
	return names
}

// Next returns the next search of an open load, or false when there is none.
// It belongs to one goroutine.
func (p *Plan) Next() (Planned, bool) {
	at, more := p.next()
	if !more {
		return Planned{}, false
	}
	s := p.search(p.number)
	s.At = at
	p.number++
	return s, true
}

// OfClient returns the nth search of a client of a closed load, both from 0.
func (p *Plan) OfClient(client, n uint64) Planned {
	return p.search(n*uint64(p.load.spec.Arrive.Closed) + client)
}

func (p *Plan) search(number uint64) Planned {
	spec := p.load.spec
	s := Planned{Number: number, User: spec.User, Roles: p.load.w.file.Users[spec.User].Roles, Index: spec.Index}
	s.ServiceTime, s.Service = serviceOf(spec.ServiceTime)
	if spec.Arrive.Trace != "" {
		row := p.load.w.file.Trace(spec.Name)[number]
		s.User, s.Roles, s.Index = row.User, row.Roles, row.Index
		if row.ServiceTime >= 0 {
			s.ServiceTime, s.Service = row.ServiceTime, cluster.ServiceTime{}
		}
	}
	return s
}

// Node returns the node of an attempt, from 1 on, at the search of a number.
func (p *Plan) Node(number uint64, attempt int) string {
	via := &p.load.via
	return via.nodes[via.next(via.first(number), attempt-1)]
}

// Again says whether a client tries again after an attempt with a status.
func (p *Plan) Again(status, attempt int) bool {
	r := p.load.spec.Retry
	return r != nil && attempt < r.Attempts && slices.Contains(r.On, status)
}

// Wait returns how long a client waits after an attempt that is tried again.
func (p *Plan) Wait(number uint64, attempt int) time.Duration {
	d := p.load.seed.at(number).at(uint64(attempt)).draws()
	return backoff(&p.load.spec.Retry.Backoff, attempt, &d)
}
