package coordinator

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/wlm"
)

// search is one search from its arrival to its outcome. Its goroutine is the
// caller's; what couriers touch as well stands under mu.
type search struct {
	c        *Coordinator
	request  Request
	name     string // X-Opaque-Id, or a number
	started  time.Time
	state    *cluster.State
	group    string
	permit   wlm.Permit
	admitted bool
	departed bool // ctx ended before the end was decided
	calls    []call
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
	s.group = c.groupOf(ctx, s.state, &s.request)
	s.at(probe.CoordinatorRead, probe.ReadState) // the admission looks at the mode in force
	if err := c.config.Throttle.Admit(ctx, s.state, s.group, s.name, &s.permit); err != nil {
		return nil, err
	}
	s.admitted = true
	c.tellStarted(ctx, s)
	response, err := s.execute(ctx)
	s.at(probe.Merged, s.releaseTouches())
	if ctx.Err() != nil {
		s.departed = true
		return nil, cancelled(ctx, s.name)
	}
	return response, err
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
	p, err := s.c.planFor(s.state, s.request.Index)
	if err != nil {
		return nil, err
	}
	limit := s.timeout()
	ending := s.ask(ctx, p, limit)
	switch ending {
	case byDeparture:
		return nil, ctx.Err()
	case byClosing:
		return nil, errClosing(s.c.config.Node)
	}
	s.at(probe.Merge, 0)
	return s.merge(p, ending == byTimeout, limit)
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

// Group settings that the coordinator knows (OpenSearch 3.7).
const (
	groupTimeout  = "search.default_search_timeout"
	groupOverride = "override_request_values"
)

// timeout returns how long the search may take, or 0 for no limit: the
// request's, else its group's, else the cluster's; a group that overrides
// requests comes first.
func (s *search) timeout() time.Duration {
	limit := s.request.Timeout
	if limit == 0 {
		limit = s.state.SearchTimeout()
	}
	if g := s.state.Group(s.group); g != nil && len(g.Settings) > 0 {
		own, err := cluster.ParseTime(g.Settings[groupTimeout])
		if err == nil && (s.request.Timeout == 0 || g.Settings[groupOverride] == "true") {
			limit = own
		}
	}
	return max(0, limit)
}

// ending is why a fan-out ended.
type ending uint8

const (
	byAnswers ending = iota // every node has answered
	byTimeout
	byDeparture
	byClosing
)

// ask sends the search to every node of a plan and waits for the answers, the
// time-out, the client's departure or Close. No answer is taken after it
// returned, and no node works on it.
func (s *search) ask(ctx context.Context, p *plan, limit time.Duration) ending {
	if len(p.targets) == 0 {
		return byAnswers
	}
	fan, stop := s.fanContext(ctx, limit)
	defer stop()
	s.prepare(ctx, fan, p)
	for i := range s.calls {
		if why := s.c.couriers.send(&s.calls[i]); why != nil {
			s.take(&s.calls[i], nil, why)
		}
	}
	s.at(probe.FannedOut, 0)
	select {
	case <-s.answered:
	case <-fan.Done():
	case <-s.c.closing:
	}
	return s.seal(ctx)
}

// fanContext returns the context of the requests to data nodes. The limit
// counts from the search's arrival.
func (s *search) fanContext(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, s.started.Add(limit), errTimeout)
}

// prepare makes one call a node.
func (s *search) prepare(ctx, fan context.Context, p *plan) {
	r := wire.SearchRequest{
		Headers: s.headers(ctx), Search: s.name, Group: s.group,
		Query: s.request.Query, From: s.request.From, Size: s.request.Size, ServiceTime: s.request.ServiceTime,
	}
	if s.request.Count {
		r.From, r.Size = 0, 0
	}
	s.calls = make([]call, len(p.targets))
	for i := range p.targets {
		s.calls[i] = call{search: s, ctx: fan, target: &p.targets[i], request: r}
		s.calls[i].request.Shards = p.targets[i].shards
	}
	s.answered = make(chan struct{})
	s.open = len(s.calls)
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
func (s *search) take(k *call, answer *wire.SearchAnswer, err error) {
	if err != nil && k.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return
	}
	k.done, k.answer, k.err = true, answer, err
	s.open--
	if s.open == 0 {
		close(s.answered)
	}
}

// seal ends the taking of answers and says why.
func (s *search) seal(ctx context.Context) ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
	switch {
	case ctx.Err() != nil:
		return byDeparture
	case s.open == 0:
		return byAnswers
	case s.c.closed():
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
	o, uncounted := outcomeOf(*response, *err, s.departed)
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
