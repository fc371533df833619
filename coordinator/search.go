package coordinator

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/wlm"
)

// search is one search from its arrival to its outcome. Its goroutine is the
// caller's; what couriers touch as well is in the round.
type search struct {
	c        *Coordinator
	request  Request
	name     string  // the request's ID, or a number
	parent   *search // that started this one; nil: none did
	task     *task.Task
	started  time.Time
	state    *cluster.State
	header   string // the group that searches which this one starts inherit, whether or not there is one
	group    string
	limits   limits
	kept     *wire.Kept // what data nodes keep for it; nil: nothing
	keptErr  error      // why the client's text of that cannot be read
	permit   wlm.Permit
	admitted bool
	refused  bool // the throttle refused this very search
	departed bool // ctx ended before the end was decided
	calls    []call
	ending   ending // of the last round
}

// round is one fan-out of a search: what its couriers and it have in common.
type round struct {
	answered chan struct{} // closed when open is 0

	mu     sync.Mutex
	open   int  // calls without an answer
	sealed bool // answers come too late from now on
}

func newSearch(c *Coordinator, r Request) *search {
	s := &search{c: c, request: r, name: r.ID, started: time.Now()}
	if s.name == "" {
		s.name = c.config.Node + ":" + strconv.FormatUint(c.number.Add(1), 10)
	}
	return s
}

func (s *search) at(step probe.Step, touches probe.Touch) {
	p := s.c.config.Probe
	if !p.On() {
		return
	}
	e := probe.Event{Step: step, Group: s.group, Search: s.name, Touches: touches}
	if s.state != nil {
		e.Version = s.state.Version()
	}
	if s.admitted {
		e.Bucket = s.permit.Bucket()
	}
	p.At(e)
}

// run is a search up to the decision on its end.
func (s *search) run(ctx context.Context) (*Response, error) {
	c := s.c
	s.state = c.config.States.State()
	s.resume()
	untagged := s.tag(ctx)
	s.at(probe.CoordinatorRead, probe.ReadState) // the admission looks at the mode in force
	if untagged != nil {
		return nil, untagged
	}
	s.limits = limitsOf(&s.request, s.state.Group(s.group), s.state)
	ctx, stop := s.cancelling(ctx)
	defer stop()
	if err := s.admit(ctx); err != nil {
		s.refused = true
		return nil, err
	}
	s.admitted = true
	ctx = s.begin(ctx)
	c.tellStarted(ctx, s)
	response, err := s.execute(ctx)
	s.at(probe.Merged, s.releaseTouches())
	if ctx.Err() != nil {
		s.departed = true
		return nil, cancelled(ctx, s.name)
	}
	return response, err
}

// admit asks the throttle. The page of a scroll that cannot be found is charged
// like any other, since nobody has looked for it yet.
func (s *search) admit(ctx context.Context) error {
	t := s.c.config.Throttle
	switch {
	case s.request.ScrollID != "":
		return t.AdmitPage(ctx, s.state, s.group, s.name, &s.permit)
	case s.parent != nil:
		return t.AdmitNested(ctx, s.state, s.group, s.name, &s.parent.permit, &s.permit)
	}
	return t.Admit(ctx, s.state, s.group, s.name, &s.permit)
}

// tag finds the search's group by the state, the view of the rules, and its
// header.
func (s *search) tag(ctx context.Context) (err error) {
	index := s.request.Index
	if s.kept != nil {
		index = s.kept.Expression
	}
	s.header, err = s.c.config.Throttle.Tag(s.request.GroupHeader, s.c.tag(ctx, s.state, index))
	if s.group = s.header; err != nil || s.state.Group(s.group) == nil {
		s.group = cluster.DefaultGroupID
	}
	return err
}

// releaseTouches is what the release of the permit touches, if there is one.
func (s *search) releaseTouches() probe.Touch {
	if s.permit.Held() {
		return probe.WriteBucket
	}
	return 0
}

// execute does what was asked for. When ctx ends it returns early and its
// result does not count.
func (s *search) execute(ctx context.Context) (*Response, error) {
	if err := s.request.check(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := s.rewrite(ctx); err != nil {
		return nil, err
	}
	p, err := s.plan()
	if err != nil {
		return nil, err
	}
	if err := s.ask(ctx, p, s.template(ctx), nil); err != nil {
		return nil, err
	}
	s.at(probe.Merge, 0)
	response, taken, err := s.merge(p)
	if err != nil {
		return nil, s.forget(ctx, p, err)
	}
	if s.scrolls() {
		err = s.turnPage(ctx, p, response, taken)
	}
	if err != nil {
		return nil, err
	}
	response.Took = time.Since(s.started)
	return response, nil
}

// plan says which data nodes are asked for which shards.
func (s *search) plan() (*plan, error) {
	if s.keptErr != nil {
		return nil, s.keptErr
	}
	if s.kept != nil {
		return keptPlan(s.state, s.kept), nil
	}
	return s.c.planFor(s.state, &s.request)
}

// template is the request of the search to a data node, without its shards.
func (s *search) template(ctx context.Context) wire.SearchRequest {
	r := wire.SearchRequest{
		Headers: s.headers(ctx), Search: s.name, Group: s.group,
		Query: s.request.Query, From: s.request.From, Size: s.request.Size,
		ServiceTime: s.request.ServiceTime, Service: s.request.Service,
		Concurrency: s.limits.concurrency, Task: s.task.ID().Number,
	}
	if s.request.Count {
		r.From, r.Size = 0, 0
	}
	if s.request.ScrollID != "" {
		r.Concurrency = 0 // upstream asks all shards of a next page at once
	}
	switch {
	case s.kept != nil:
		r.Context, r.KeepAlive, r.Point = s.kept.Context, s.request.Scroll, s.request.PointID
		if s.kept.Point {
			r.KeepAlive = s.request.KeepAlive
		}
	case s.request.Scroll > 0:
		r.Phase, r.Context, r.KeepAlive = wire.OpenScroll, s.c.newContext(), s.request.Scroll
		s.kept = &wire.Kept{
			Context: r.Context, Expression: s.request.Index, Size: s.request.Size, ServiceTime: s.request.ServiceTime, Service: s.request.Service,
		}
	}
	return r
}

func (r *Request) check() error {
	switch {
	case r.From < 0:
		return cluster.Errorf(cluster.IllegalArgument, "[from] parameter cannot be negative but was [%d]", r.From)
	case r.Size < 0:
		return cluster.Errorf(cluster.IllegalArgument, "[size] parameter cannot be negative, found [%d]", r.Size)
	}
	return nil
}

// ending is why a fan-out ended.
type ending uint8

const (
	byAnswers ending = iota // every node has answered
	byTimeout
	byDeparture
	byClosing
)

// ask sends a request to every node of a plan and waits for the answers, the
// time-out, the client's departure or Close; the error says that it was one of
// the latter two. No answer is taken after it returned, and no node works on it.
// fill, if not nil, completes the request to one node.
func (s *search) ask(ctx context.Context, p *plan, template wire.SearchRequest, fill func(*wire.SearchRequest)) error {
	s.calls, s.ending = nil, byAnswers
	if len(p.targets) == 0 {
		return nil
	}
	fan, stop := s.fanContext(ctx)
	defer stop()
	now := s.prepare(fan, p, template, fill)
	defer takeBack(s.calls)
	for i := range s.calls {
		if why := s.c.couriers.send(&s.calls[i]); why != nil {
			now.take(&s.calls[i], nil, why)
		}
	}
	if template.Phase == wire.Query || template.Phase == wire.OpenScroll {
		s.fannedOut(fan)
	}
	select {
	case <-now.answered:
	case <-fan.Done():
	case <-s.c.closing:
	}
	switch s.ending = now.seal(ctx, s.c); s.ending {
	case byDeparture:
		return ctx.Err()
	case byClosing:
		return errClosing(s.c.config.Node)
	}
	return nil
}

// takeBack ends the calls that were sent and have no answer.
func takeBack(calls []call) {
	for i := range calls {
		if sent := calls[i].sent; sent != nil {
			sent.Cancel()
		}
	}
}

// fannedOut is the step after the last call was sent. A search that is held
// there takes them back in time all the same; it goes on when it has.
func (s *search) fannedOut(fan context.Context) {
	if !s.c.config.Probe.On() {
		return
	}
	calls, taken := s.calls, make(chan struct{})
	stop := context.AfterFunc(fan, func() {
		defer close(taken)
		takeBack(calls)
	})
	defer func() {
		if !stop() {
			<-taken
		}
	}()
	s.at(probe.FannedOut, 0)
}

// fanContext returns the context of the requests to data nodes. The limit
// counts from the search's arrival.
func (s *search) fanContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.limits.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, s.started.Add(s.limits.timeout), errTimeout)
}

// prepare makes one call a node, of a new round.
func (s *search) prepare(fan context.Context, p *plan, template wire.SearchRequest, fill func(*wire.SearchRequest)) *round {
	now := &round{answered: make(chan struct{}), open: len(p.targets)}
	s.calls = make([]call, len(p.targets))
	for i := range p.targets {
		s.calls[i] = call{search: s, round: now, ctx: fan, target: &p.targets[i], request: template}
		s.calls[i].request.Shards = p.targets[i].shards
		if fill != nil {
			fill(&s.calls[i].request)
		}
	}
	return now
}

func (s *search) headers(ctx context.Context) []wire.Header {
	var headers []wire.Header
	if s.request.ID != "" {
		headers = append(headers, wire.Header{Name: HeaderOpaqueID, Value: s.request.ID})
	}
	if s.group != cluster.DefaultGroupID {
		headers = append(headers, wire.Header{Name: HeaderGroup, Value: s.group})
	}
	return append(headers, s.c.config.Throttle.CarrierHeaders(ctx)...)
}

// take keeps what came of a call, unless it is too late. An error once the
// fan-out is over only says that it is over, and the search hears of that by
// itself: to take it would make an answer of a time-out.
func (r *round) take(k *call, answer *wire.SearchAnswer, err error) {
	if err != nil && k.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		return
	}
	k.done, k.answer, k.err = true, answer, err
	r.open--
	if r.open == 0 {
		close(r.answered)
	}
}

// seal ends the taking of answers and says why.
func (r *round) seal(ctx context.Context, c *Coordinator) ending {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sealed = true
	switch {
	case ctx.Err() != nil:
		return byDeparture
	case r.open == 0:
		return byAnswers
	case c.closed():
		return byClosing
	}
	return byTimeout
}

// conclude makes an error of a panic, and tells the listeners how the search
// ended. It is deferred, like giveBack and settle, so that they run after a
// panic and a Goexit as well.
func (s *search) conclude(ctx context.Context, response **Response, err *error) {
	if v := recover(); v != nil {
		s.c.logPanic("the search", s.name, v)
		*response, *err = nil, errPanicked()
	}
	if *response == nil && *err == nil { // a Goexit
		*err = errPanicked()
	}
	if s.admitted {
		s.c.tellEnded(ctx, s, *response, *err)
	}
}

// giveBack releases the permit.
func (s *search) giveBack(response **Response, err *error) {
	if !s.admitted && !s.permit.Held() {
		return
	}
	s.permit.Release()
	if !s.c.guard("step "+string(probe.Released), s.name, func() { s.at(probe.Released, probe.ReadMap|probe.WriteCounters) }) {
		*response, *err = nil, errPanicked()
	}
}

// settle counts the outcome.
func (s *search) settle(response **Response, err *error) {
	o, uncounted := s.outcome(*response, *err)
	s.countStats(o)
	s.c.outcomes.count(s.outcomeGroup(), o, uncounted)
}

// countStats counts the search in the stats of _wlm/stats. A search whose
// client left has failed there, as upstream: cancellations are those of the
// resource limits.
func (s *search) countStats(o outcome) {
	switch o {
	case completed:
		s.c.config.Throttle.Completed(s.group)
	case failed, wasCancelled:
		s.c.config.Throttle.Failed(s.group)
	}
}

// outcomeGroup is the search's group, also when it did not get as far as
// having one.
func (s *search) outcomeGroup() string {
	if s.group == "" {
		return cluster.DefaultGroupID
	}
	return s.group
}

func (c *Coordinator) tellStarted(ctx context.Context, s *search) {
	for i, listen := range c.config.Started {
		c.guard("a listener for started searches", s.name, func() {
			if err := listen(ctx, s.request); err != nil {
				c.config.Log.Warn("a listener for started searches returned an error", "listener", i, "search", s.name, "error", err)
			}
		})
	}
}

func (c *Coordinator) tellEnded(ctx context.Context, s *search, response *Response, err error) {
	for i, listen := range c.config.Ended {
		c.guard("a listener for ended searches", s.name, func() {
			if err := listen(ctx, s.request, response, err); err != nil {
				c.config.Log.Warn("a listener for ended searches returned an error", "listener", i, "search", s.name, "error", err)
			}
		})
	}
}
