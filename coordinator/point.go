package coordinator

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// PointRequest asks for a point in time.
type PointRequest struct {
	Index               string               // as in [Request]
	Options             cluster.IndexOptions // the same
	KeepAlive           time.Duration        // from its last use on; over 0
	Preference, Routing string
	AllowPartial        bool // whether some shards may be missing from it
}

// Point is a point in time. It belongs to the caller.
type Point struct {
	ID      string
	Created time.Time
	Shards  ShardSummary
}

// OpenPoint keeps the shards of indices for searches that name the point. It
// takes no permit and is counted nowhere.
func (c *Coordinator) OpenPoint(ctx context.Context, r PointRequest) (point *Point, err error) {
	err = c.errand(ctx, ActionOpenPoint, func(ctx context.Context, s *search) (err error) {
		point, err = s.openPoint(ctx, &r)
		return err
	})
	return point, err
}

// openPoint opens a point on the shards that answer, and again without those
// that do not, since its text is what its searches and the lists of points go
// by. Each time there are fewer. A node that does not answer is left to time.
func (s *search) openPoint(ctx context.Context, r *PointRequest) (*Point, error) {
	p, err := s.c.newPlan(s.state, &Request{Index: r.Index, Options: r.Options, Preference: r.Preference, Routing: r.Routing})
	if err != nil {
		return nil, err
	}
	point := &Point{Created: s.started, Shards: ShardSummary{Total: p.shards}}
	for {
		k := &wire.Kept{Point: true, Context: s.c.newContext(), Expression: namesOf(p), Shards: p.kept()}
		opening := s.housekeeping(wire.OpenPoint, k.Context)
		opening.KeepAlive, opening.Point, opening.Task = r.KeepAlive, k.Text(), s.task.ID().Number
		if err := s.ask(ctx, p, opening, nil); err != nil {
			return nil, err
		}
		found, failures := s.collect(p)
		point.Shards.Failures = append(point.Shards.Failures, failures...)
		switch {
		case len(failures) == 0:
			point.ID, point.Shards.Successful, point.Shards.Failed = k.Text(), len(found), len(point.Shards.Failures)
			sortFailures(point.Shards.Failures)
			return point, nil
		case len(found) == 0:
			return nil, newSearchError(AllShardsFailed, point.Shards.Failures)
		}
		s.limits.timeout, p = time.Since(s.started)+housekeepingTime, p.only(found)
		if _, err := s.free(ctx, p, s.housekeeping(wire.Free, k.Context)); err != nil {
			return nil, err
		}
		if !r.AllowPartial {
			return nil, newSearchError(PartialFailure, failures)
		}
	}
}

// namesOf lists the indices of a plan, which the searches of a point are tagged
// by.
func namesOf(p *plan) string {
	var names []string
	for _, t := range p.targets {
		for _, s := range t.shards {
			names = append(names, s.Index)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// FreedPoint says whether a point in time could be ended everywhere.
type FreedPoint struct {
	ID         string
	Successful bool
}

// FreePoints ends points in time, all of the cluster's if none is given. A text
// that cannot be read is an error, and then nothing was ended. One that is over
// already counts as ended.
func (c *Coordinator) FreePoints(ctx context.Context, ids []string) (freed []FreedPoint, err error) {
	err = c.errand(ctx, ActionFreePoints, func(ctx context.Context, s *search) error {
		if len(ids) == 0 {
			points, err := s.points(ctx)
			if err != nil {
				return err
			}
			for _, p := range points {
				ids = append(ids, p.Text)
			}
		}
		points := make([]*wire.Kept, len(ids))
		for i, id := range ids {
			var err error
			if points[i], err = parsePoint(id); err != nil {
				return err
			}
		}
		for i, k := range points {
			p := keptPlan(s.state, k)
			if err := s.ask(ctx, p, s.housekeeping(wire.Free, k.Context), nil); err != nil {
				return err
			}
			_, failures := s.collect(p)
			freed = append(freed, FreedPoint{ids[i], len(failures) == 0})
		}
		return nil
	})
	return freed, err
}

// Points lists the points in time that the data nodes keep, by age. Nodes that
// do not answer are left out.
func (c *Coordinator) Points(ctx context.Context) (points []wire.Point, err error) {
	err = c.errand(ctx, ActionListPoints, func(ctx context.Context, s *search) (err error) {
		points, err = s.points(ctx)
		return err
	})
	return points, err
}

func (s *search) points(ctx context.Context) ([]wire.Point, error) {
	if err := s.ask(ctx, everyDataNode(s.state), s.housekeeping(wire.ListPoints, wire.ContextID{}), nil); err != nil {
		return nil, err
	}
	var points []wire.Point
	for i := range s.calls {
		k := &s.calls[i]
		if k.failure(s.limits.timeout) != nil {
			continue
		}
		for _, p := range k.answer.Points {
			if _, err := parsePoint(p.Text); err == nil { // answers are not trusted
				points = append(points, p)
			}
		}
	}
	slices.SortFunc(points, func(a, b wire.Point) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Created, b.Created))
	})
	points = slices.CompactFunc(points, func(a, b wire.Point) bool { return a.Text == b.Text })
	slices.SortStableFunc(points, func(a, b wire.Point) int { return cmp.Compare(a.Created, b.Created) })
	return points, nil
}
