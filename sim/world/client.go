package world

import (
	"context"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// link is the way of the steps' clients to one node. What is sent over it
// arrives in order, each message at an instant of its own.
type link struct {
	seed    stream
	latency scenario.Range

	mu   sync.Mutex
	sent uint64
	last time.Time // when the last message arrives
}

// send returns when a message that is sent now arrives, and the way back of
// its answer.
func (l *link) send(now time.Time) (arrival time.Time, back time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	d := l.seed.at(l.sent).draws()
	arrival = now.Add(d.between(l.latency))
	if !arrival.After(l.last) {
		arrival = l.last.Add(1)
	}
	l.last = arrival
	return arrival, d.between(l.latency)
}

// links are those to all nodes.
type links struct {
	seed    stream
	latency scenario.Range

	mu sync.Mutex
	to map[string]*link
}

func (l *links) link(node string) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		l.to = map[string]*link{}
	}
	if l.to[node] == nil {
		l.to[node] = &link{seed: l.seed.named(node), latency: l.latency}
	}
	return l.to[node]
}

// exchange is one request of a client and its answer.
type exchange struct {
	sent    time.Time
	arrival time.Time
	back    time.Duration
	node    string
}

// send sends a request to a member over its steps' link, now.
func (w *world) send(m *member) exchange {
	sent := time.Now()
	arrival, back := w.lines.link(m.name).send(sent)
	return exchange{sent: sent, arrival: arrival, back: back, node: m.name}
}

// deliver waits until the request arrives and does the work on the node; then
// it waits until the answer is back. Without a node there, or if its life ends
// before the answer left, the client learns just that.
func (x exchange) deliver(m *member, work func(*life) scenario.Answer) scenario.Answer {
	time.Sleep(time.Until(x.arrival))
	answer := broke(x.node, refusedText)
	if l := m.current.Load(); l != nil {
		answer = work(l)
		answer.Node = x.node
		if l.isGone() {
			answer = broke(x.node, resetText)
		}
	}
	time.Sleep(x.back)
	answer.Took = time.Since(x.sent)
	return answer
}

// explain turns the end of a request into what its client sees.
func explain(err error) scenario.Answer {
	if err == nil {
		return scenario.Answer{Status: 200}
	}
	status, kind, reason := rest.Explain(err)
	return scenario.Answer{Status: status, Error: scenario.Failure{Type: kind, Reason: reason}}
}

// principal returns the context of a user's searches. Without a user and roles
// there is no principal.
func (w *world) principal(user string, roles []string) context.Context {
	if user == "" && len(roles) == 0 {
		return w.ctx
	}
	return wlm.WithPrincipal(w.ctx, wlm.Principal{User: user, Roles: roles, Canary: w.canaries.next()})
}

// summary is what an expression knows of the shards of a search.
func summary(r *coordinator.Response, err error) scenario.ShardsSummary {
	s := scenario.ShardsSummary{}
	if r == nil {
		failed, _ := asSearchError(err)
		s.Failed = len(failed)
		s.Total = s.Failed
		s.FailedNodes = nodesOf(failed)
		return s
	}
	s.Total, s.Successful, s.Failed = r.Shards.Total, r.Shards.Successful, r.Shards.Failed
	s.FailedNodes = nodesOf(r.Shards.Failures)
	return s
}
