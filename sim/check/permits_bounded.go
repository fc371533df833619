package check

import (
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// permitsBounded: a bucket never holds more than the limit in the version that
// the admitted search read, and never less than 0.
//
// The throttle's own word is in each event of an admission: how many the
// bucket held then, and the limit. Beside that, searches are counted that hold
// a permit for sure, which is from the event of the admission to that of the
// merge. Of those that hold one at the same time the last to be admitted saw
// all the others, so they are no more than the greatest of their limits. And
// none gives back what it does not hold, or some bucket would be short of one.
type permitsBounded struct {
	findings
	permits map[permit]permitUse
	buckets map[bucket]*occupancy
	spare   []*occupancy // empty ones, for re-use: as many as there ever were at once
}

// permit is what a search has of a bucket.
type permit struct {
	life
	search string
	bucket uint64
}

type permitUse struct {
	held  int // admissions less releases
	sure  int // of these, those whose answers are not merged
	limit int
}

type bucket struct {
	life
	hash uint64
}

// occupancy is the permits of one bucket that are held for sure.
type occupancy struct {
	held   int
	limits []limitCount // by which they were given; few
}

type limitCount struct{ limit, held int }

func newPermitsBounded() *permitsBounded {
	return &permitsBounded{permits: map[permit]permitUse{}, buckets: map[bucket]*occupancy{}}
}

func (c *permitsBounded) Name() scenario.Promise { return scenario.PermitsBounded }

func (c *permitsBounded) Kinds() []string {
	return []string{string(probe.Acquired), string(probe.Merged), string(probe.Released)}
}

func (c *permitsBounded) Observe(e *history.Event) {
	if e.Bucket == 0 { // a search without a permit
		return
	}
	p := permit{lifeOf(e), e.Search, e.Bucket}
	use, known := c.permits[p]
	switch probe.Step(e.Kind) {
	case probe.Acquired:
		c.admit(e, p, use)
	case probe.Merged:
		if use.sure > 0 {
			use.sure--
			c.permits[p] = use
			c.leave(p, use.limit)
		}
	case probe.Released:
		if !known {
			c.add("a permit was given back that was not held", "%v, group %s, search %s, at %v", p.life, e.Group, e.Search, e.At)
			return
		}
		c.release(p, use)
	}
}

func (c *permitsBounded) admit(e *history.Event, p permit, use permitUse) {
	if e.Held < 1 || e.Held > e.Limit {
		c.add("a bucket held more permits than the limit that its search read, or none",
			"%v, group %s, bucket %016x, search %s: %d held, limit %d in version %d, at %v", p.life, e.Group, e.Bucket, e.Search, e.Held, e.Limit, e.Version, e.At)
	}
	o := c.enter(bucket{p.life, p.bucket})
	if use.sure > 0 && e.Limit > use.limit { // a name that comes twice has one limit here
		o.change(use.limit, -use.sure)
		o.change(e.Limit, use.sure)
	}
	use.limit = max(use.limit, e.Limit)
	use.held++
	use.sure++
	c.permits[p] = use
	o.change(use.limit, 1)
	if most := o.limit(); o.held > most {
		c.add("more searches held a permit of one bucket at the same time than any of their limits",
			"%v, group %s, bucket %016x, search %s: %d of %d, at %v", p.life, e.Group, e.Bucket, e.Search, o.held, most, e.At)
	}
}

// enter returns the occupancy of a bucket, a new one if nobody holds a permit
// of it for sure.
func (c *permitsBounded) enter(b bucket) *occupancy {
	o := c.buckets[b]
	if o != nil {
		return o
	}
	if n := len(c.spare); n > 0 {
		o, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		o = &occupancy{}
	}
	c.buckets[b] = o
	return o
}

func (c *permitsBounded) release(p permit, use permitUse) {
	if use.sure == use.held {
		use.sure--
		c.leave(p, use.limit)
	}
	use.held--
	if use.held == 0 {
		delete(c.permits, p)
		return
	}
	c.permits[p] = use
}

func (c *permitsBounded) leave(p permit, limit int) {
	b := bucket{p.life, p.bucket}
	o := c.buckets[b]
	o.change(limit, -1)
	if o.held == 0 {
		delete(c.buckets, b)
		o.limits = o.limits[:0]
		c.spare = append(c.spare, o)
	}
}

func (o *occupancy) change(limit, by int) {
	o.held += by
	for i := range o.limits {
		if o.limits[i].limit == limit {
			o.limits[i].held += by
			return
		}
	}
	o.limits = append(o.limits, limitCount{limit, by})
}

// limit returns the greatest limit by which a permit is held now.
func (o *occupancy) limit() int {
	most := 0
	for _, l := range o.limits {
		if l.held > 0 {
			most = max(most, l.limit)
		}
	}
	return most
}

func (c *permitsBounded) Finish(*Facts) Result { return c.result(c.Name()) }
