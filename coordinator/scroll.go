package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// resume reads the text by which the client goes on with a scroll or searches a
// point in time. What is wrong with it is told once the search is admitted.
func (s *search) resume() {
	r := &s.request
	switch {
	case r.ScrollID != "":
		if s.kept, s.keptErr = parseScroll(r.ScrollID); s.kept != nil {
			r.From, r.Size, r.Count = 0, s.kept.Size, false
			r.ServiceTime, r.Service = s.kept.ServiceTime, s.kept.Service
		}
	case r.PointID != "":
		s.kept, s.keptErr = parsePoint(r.PointID)
	}
}

func parseScroll(text string) (*wire.Kept, error) {
	k, err := wire.ParseKept(text)
	if err != nil || k.Point {
		return nil, cluster.Errorf(cluster.IllegalArgument, "Cannot parse scroll id")
	}
	return k, nil
}

func parsePoint(text string) (*wire.Kept, error) {
	k, err := wire.ParseKept(text)
	if err != nil || !k.Point {
		return nil, cluster.Errorf(cluster.IllegalArgument, "invalid id: [%s]", shorten(text))
	}
	return k, nil
}

// scrolls says whether the search is a page of a scroll, the first one or
// another one.
func (s *search) scrolls() bool { return s.kept != nil && !s.kept.Point }

// turnPage tells the shards how many of their hits are in the answer, as the
// fetch phase does upstream, and gives the client its text. The scroll goes on
// with the shards that answered. A shard that could not be told is a failure:
// its hits will come again.
func (s *search) turnPage(ctx context.Context, p *plan, r *Response, taken map[wire.ShardID]int) error {
	s.kept.Shards = nil
	for _, shard := range p.kept() {
		if _, answered := taken[shard.ShardID]; answered {
			s.kept.Shards = append(s.kept.Shards, shard)
		}
	}
	r.ScrollID = s.kept.Text()
	told := keptPlan(s.state, s.kept)
	err := s.ask(ctx, told, s.housekeeping(wire.Fetched, s.kept.Context), func(w *wire.SearchRequest) {
		for _, shard := range w.Shards {
			w.Taken = append(w.Taken, taken[shard])
		}
	})
	if err != nil {
		return err
	}
	_, failures := s.collect(told)
	r.TimedOut = r.TimedOut || s.ending == byTimeout
	r.Shards.Successful -= len(failures)
	r.Shards.Failed += len(failures)
	r.Shards.Failures = append(r.Shards.Failures, failures...)
	sortFailures(r.Shards.Failures)
	return nil
}

// housekeeping is a request that is about contexts alone.
func (s *search) housekeeping(phase wire.Phase, id wire.ContextID) wire.SearchRequest {
	return wire.SearchRequest{Search: s.name, Group: s.group, Phase: phase, Context: id}
}

// forget ends the contexts of a scroll that could not be opened on all of its
// shards, so that they do not wait for their time, and returns why.
func (s *search) forget(ctx context.Context, p *plan, why error) error {
	if e, ok := errors.AsType[*SearchError](why); !ok || e.Reason != PartialFailure || s.request.Scroll <= 0 || s.request.ScrollID != "" {
		return why
	}
	s.limits.timeout = time.Since(s.started) + housekeepingTime
	if err := s.ask(ctx, p, s.housekeeping(wire.Free, s.kept.Context), nil); err != nil {
		return err
	}
	return why
}

// housekeepingTime bounds how long data nodes may take over requests that are
// about contexts alone. Such a request costs them nothing.
const housekeepingTime = 10 * time.Second

// errand is work of the coordinator that is no search: it takes no permit and
// has no outcome.
func (c *Coordinator) errand(ctx context.Context, action string, do func(ctx context.Context, s *search) error) error {
	if !c.enter() {
		return errClosing(c.config.Node)
	}
	defer c.leave()
	s := newSearch(c, Request{})
	ctx, s.task = c.config.Tasks.Begin(ctx, task.Spec{Action: action, Parent: task.From(ctx)})
	defer s.task.End()
	s.state = c.config.States.State()
	s.group = cluster.DefaultGroupID
	s.limits.timeout = housekeepingTime
	err := do(ctx, s)
	if ctx.Err() != nil {
		return cancelled(ctx, s.name)
	}
	return err
}

// ClearScrolls ends scrolls, all of the cluster's if there is no text, and
// returns how many contexts of shards that freed. A text that cannot be read is
// an error, and then nothing was freed. Nodes that do not answer are left to
// time.
func (c *Coordinator) ClearScrolls(ctx context.Context, texts []string) (freed int, err error) {
	scrolls := make([]*wire.Kept, len(texts))
	for i, text := range texts {
		if scrolls[i], err = parseScroll(text); err != nil {
			return 0, err
		}
	}
	err = c.errand(ctx, ActionClearScroll, func(ctx context.Context, s *search) error {
		if len(scrolls) == 0 {
			freed, err = s.free(ctx, everyDataNode(s.state), s.housekeeping(wire.FreeScrolls, wire.ContextID{}))
			return err
		}
		for _, k := range scrolls {
			n, err := s.free(ctx, keptPlan(s.state, k), s.housekeeping(wire.Free, k.Context))
			freed += n
			if err != nil {
				return err
			}
		}
		return nil
	})
	return freed, err
}

// free has contexts freed and returns how many were.
func (s *search) free(ctx context.Context, p *plan, r wire.SearchRequest) (freed int, err error) {
	if err := s.ask(ctx, p, r, nil); err != nil {
		return 0, err
	}
	for i := range s.calls {
		if k := &s.calls[i]; k.failure(s.limits.timeout) == nil {
			freed += max(0, k.answer.Freed)
		}
	}
	return freed, nil
}
