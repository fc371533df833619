package world

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// load is a stream of searches with what became of them.
type load struct {
	tally
	w     *world
	spec  *scenario.Load
	seed  stream
	via   balancer
	nodes []*member                  // that via chooses from
	ctx   context.Context            // of the load's one principal; nil for a trace
	who   string                     // the principal, as a key that names nobody
	users map[string]context.Context // of a trace

	// The leader's alone; see worker.
	next     func() (at time.Duration, ok bool)
	at       time.Duration // when the next request is sent, if there is one
	more     bool
	number   uint64
	underWay dues
	spare    []*request // that have ended; the leader's, as is underWay

	mu      sync.Mutex
	over    bool
	idle    []*worker // the last one came last
	workers sync.WaitGroup
}

// request is one search of a load.
type request struct {
	number  uint64 // from 0
	sent    time.Time
	due     time.Time // when the first attempt arrives
	back    time.Duration
	ctx     context.Context
	who     string // principal, as a key that names nobody
	index   string
	service time.Duration
	drawn   cluster.ServiceTime // what shards draw from, if service is negative
	draws   stream
}

func (w *world) newLoad(spec *scenario.Load) *load {
	l := &load{w: w, spec: spec, seed: w.seed.named("load", spec.Name), users: map[string]context.Context{}}
	l.via = newBalancer(&spec.Via, w.nodeNames(), l.seed.named("via"))
	for _, name := range l.via.nodes {
		l.nodes = append(l.nodes, w.member(name))
	}
	if spec.Arrive.Trace == "" {
		l.ctx = w.principal(spec.User, w.file.Users[spec.User].Roles)
		l.who = l.w.owner(spec.User, w.file.Users[spec.User].Roles)
	}
	return l
}

// run sends all searches of the load and returns when the last one has ended.
func (l *load) run() {
	l.w.sleepUntil(time.Duration(l.spec.From))
	l.w.event(history.Event{Kind: history.LoadBegin, Detail: l.spec.Name})
	if l.spec.Arrive.Closed > 0 {
		l.closed()
	} else {
		l.next = l.arrivals()
		l.at, l.more = l.next()
		l.start()
	}
	l.workers.Wait()
	l.w.event(history.Event{Kind: history.LoadEnd, Detail: l.spec.Name})
}

// arrivals yields the times of an open load, from its start, in order. It ends
// with ok false.
func (l *load) arrivals() func() (at time.Duration, ok bool) {
	a := &l.spec.Arrive
	length := time.Duration(l.spec.For)
	until := func(next func() time.Duration) func() (time.Duration, bool) {
		return func() (time.Duration, bool) {
			at := next()
			return at, at < length
		}
	}
	var number uint64
	switch {
	case a.Poisson.Count > 0:
		at, mean, seed := time.Duration(0), a.Poisson.Mean(), l.seed.named("arrivals")
		return until(func() time.Duration {
			d := seed.at(number).draws()
			number++
			at += d.exponential(mean)
			return at
		})
	case a.Constant.Count > 0:
		perSecond := a.Constant.PerSecond()
		return until(func() time.Duration {
			number++
			return time.Duration(float64(number-1) / perSecond * float64(time.Second))
		})
	case a.Burst != nil:
		size, every := uint64(a.Burst.Size), time.Duration(a.Burst.Every)
		return until(func() time.Duration {
			number++
			return time.Duration((number-1)/size) * every
		})
	}
	rows := l.w.file.Trace(l.spec.Name)
	return func() (time.Duration, bool) {
		if number == uint64(len(rows)) {
			return 0, false
		}
		number++
		return rows[number-1].At, true
	}
}

// due returns the request that arrives next, or nil if there is none. Requests
// are under way between client and node while later ones are sent, so they come
// in the order of their arrival.
func (l *load) due() *request {
	for l.more && (len(l.underWay) == 0 || l.instant(l.at).Before(l.underWay[0].r.due)) {
		l.underWay.push(l.request(l.number, l.instant(l.at)))
		l.number++
		l.at, l.more = l.next()
	}
	if len(l.underWay) == 0 || l.w.ctx.Err() != nil {
		return nil
	}
	return l.underWay.pop()
}

// instant returns the instant of a time of the load.
func (l *load) instant(d time.Duration) time.Time {
	return l.w.zero.Add(time.Duration(l.spec.From) + d)
}

// request makes the request of a number, which is sent at an instant.
func (l *load) request(number uint64, sent time.Time) *request {
	r := l.blank()
	*r = request{number: number, sent: sent, ctx: l.ctx, who: l.who, index: l.spec.Index, draws: l.seed.at(number)}
	d := r.draws.draws()
	r.due = sent.Add(d.between(*l.w.file.Cluster.Network.Latency))
	r.back = d.between(*l.w.file.Cluster.Network.Latency)
	r.service, r.drawn = serviceOf(l.spec.ServiceTime)
	if l.spec.Arrive.Trace != "" {
		l.traced(r)
	}
	l.send()
	return r
}

// blank returns a request to fill in: one that has ended, or a new one. A closed
// load has none that ended here.
func (l *load) blank() *request {
	last := len(l.spare) - 1
	if last < 0 {
		return &request{}
	}
	r := l.spare[last]
	l.spare = l.spare[:last]
	return r
}

// traced fills in what the trace says of a request.
func (l *load) traced(r *request) {
	row := l.w.file.Trace(l.spec.Name)[r.number]
	key := strconv.Quote(row.User)
	for _, role := range row.Roles {
		key += strconv.Quote(role)
	}
	if l.users[key] == nil {
		l.users[key] = l.w.principal(row.User, row.Roles)
	}
	r.ctx, r.index, r.who = l.users[key], row.Index, l.w.owner(row.User, row.Roles)
	if row.ServiceTime >= 0 {
		r.service, r.drawn = row.ServiceTime, cluster.ServiceTime{}
	}
}

// finish takes a request whose first attempt has arrived to its end.
func (l *load) finish(r *request, w *worker) {
	first := l.via.first(r.number)
	for attempt := 1; ; attempt++ {
		status := l.attempt(r, l.nodes[l.via.next(first, attempt-1)], attempt)
		if end, over := l.end(r, status, attempt); over {
			l.add(end, attempt, time.Since(r.sent)+r.back)
			return
		}
		w.handOver()
		time.Sleep(l.nextAttempt(r, attempt))
		if l.gaveUp(r, 0) {
			l.add(cancelled, attempt, time.Duration(l.spec.CancelAfter))
			return
		}
	}
}

// nextAttempt draws how long it is from the end of an attempt on the node to
// the arrival of the next one.
func (l *load) nextAttempt(r *request, attempt int) time.Duration {
	d := r.draws.at(uint64(attempt)).draws()
	latency := *l.w.file.Cluster.Network.Latency
	wait := r.back + backoff(&l.spec.Retry.Backoff, attempt, &d) + d.between(latency)
	r.back = d.between(latency)
	return wait
}

// end says how the request ended, or that there is another attempt.
func (l *load) end(r *request, status, attempt int) (end outcome, over bool) {
	switch {
	case l.gaveUp(r, r.back):
		return cancelled, true
	case l.spec.Retry != nil && attempt < l.spec.Retry.Attempts && slices.Contains(l.spec.Retry.On, status):
		return 0, false
	case status == 200:
		return completed, true
	case status == 429:
		return throttled, true
	}
	return failed, true
}

// gaveUp says whether the client has given up before what comes after so long.
func (l *load) gaveUp(r *request, after time.Duration) bool {
	limit := time.Duration(l.spec.CancelAfter)
	return limit > 0 && time.Since(r.sent)+after > limit || l.w.ctx.Err() != nil
}

// backoff draws the time that a client waits after an attempt.
func backoff(b *scenario.Backoff, attempt int, d *draws) time.Duration {
	longest := float64(scenario.MaxTime)
	if b.Max > 0 {
		longest = float64(b.Max)
	}
	wait := float64(b.Initial)
	for range attempt - 1 {
		if wait *= b.Factor; wait >= longest || b.Factor == 1 {
			break
		}
	}
	wait = min(wait, longest)
	switch b.Jitter {
	case "full":
		wait *= d.share()
	case "equal":
		wait *= (1 + d.share()) / 2
	}
	return time.Duration(wait)
}

// attempt sends one search to a node, where it has just arrived, and returns
// the status that the client sees; 0 if the connection is refused or breaks.
func (l *load) attempt(r *request, m *member, attempt int) int {
	id := l.spec.Name + "-" + strconv.FormatUint(r.number, 10)
	if attempt > 1 {
		id += "." + strconv.Itoa(attempt)
	}
	if l.w.record.on() {
		l.w.event(history.Event{Kind: history.RequestSent, Node: m.name, Search: id, Detail: r.who})
	}
	status := 0
	if life := m.current.Load(); life != nil {
		status = l.search(r, life, id)
	}
	if l.w.record.on() {
		seen := status
		if l.gaveUp(r, r.back) {
			seen = 0
		}
		l.w.event(history.Event{Kind: history.RequestAnswered, Node: m.name, Search: id, Status: seen})
	}
	return status
}

// search asks for no hits: nobody looks at those of a load.
func (l *load) search(r *request, life *life, id string) int {
	request := coordinator.Request{
		ID: id, Index: r.index, Timeout: time.Duration(l.spec.Timeout), AllowPartial: l.spec.AllowPartial,
		ServiceTime: r.service, Service: r.drawn,
	}
	if l.spec.Group != "" {
		request.GroupHeader = l.w.ids.group(l.spec.Group)
	}
	ctx := r.ctx
	if l.spec.CancelAfter > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		// The node hears of it as late as the client hears of the node.
		leaving := time.AfterFunc(time.Duration(l.spec.CancelAfter)-time.Since(r.sent)+r.back, stop)
		defer leaving.Stop()
	}
	_, err := life.node.Search(ctx, request)
	if life.isGone() {
		return 0
	}
	return statusOf(err)
}

// statusOf returns the status of an answer. Under a storm of refusals their
// texts would cost more than all the rest, so it does not make them.
func statusOf(err error) int {
	if err == nil {
		return 200
	}
	if _, ok := errors.AsType[*wlm.Rejection](err); ok {
		return 429
	}
	status, _, _ := rest.Explain(err)
	return status
}

// closed runs a number of clients, each of which sends its next search once it
// has the answer and has thought.
func (l *load) closed() {
	for i := range l.spec.Arrive.Closed {
		l.workers.Go(func() { l.clientLoop(uint64(i)) })
	}
}

func (l *load) clientLoop(client uint64) {
	end := l.instant(time.Duration(l.spec.For))
	clients, sent := uint64(l.spec.Arrive.Closed), time.Now()
	for k := uint64(0); sent.Before(end) && l.w.ctx.Err() == nil; k++ {
		r := l.request(k*clients+client, sent)
		time.Sleep(time.Until(r.due))
		l.finish(r, nil)
		sent = time.Now().Add(r.back + time.Duration(l.spec.Arrive.Think))
	}
}

// length is how long searches arrive.
func (l *load) length() time.Duration {
	if rows := l.w.file.Trace(l.spec.Name); len(rows) > 0 {
		return rows[len(rows)-1].At
	}
	return time.Duration(l.spec.For)
}
