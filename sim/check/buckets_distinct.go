package check

import (
	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// MaxPrincipals is how many buckets the check of [scenario.BucketsDistinct]
// remembers, over all groups and nodes; they take about 200 MB. Beyond, it is
// undecided.
const MaxPrincipals = 1_000_000

// bucketsDistinct: two principals that differ in a byte never share a bucket,
// and one never has two. Step wlm.acquire_begin names the bucket and, in its
// detail, the attribute; the event of the sending has the [history.PrincipalKey].
type bucketsDistinct struct {
	findings
	most   int
	known  int
	owners map[request]owner
	spaces map[space]*pairs
	spare  []*pairs // of former runs, empty
}

// owner is the keys of who sent a search, by attribute; "" where there is none.
type owner struct{ user, role string }

// space is where buckets of one life and group, of one attribute, are apart.
type space struct {
	life
	group     string
	attribute cluster.Attribute
}

// pairs is which principal has which bucket.
type pairs struct {
	bucketOf map[string]uint64
	ownerOf  map[uint64]string
}

func newBucketsDistinct() *bucketsDistinct {
	return &bucketsDistinct{most: MaxPrincipals, owners: map[request]owner{}, spaces: map[space]*pairs{}}
}

func (c *bucketsDistinct) Name() scenario.Promise { return scenario.BucketsDistinct }

func (c *bucketsDistinct) Kinds() []string {
	return []string{history.RequestSent, string(probe.AcquireBegin), history.RequestAnswered}
}

func (c *bucketsDistinct) Observe(e *history.Event) {
	r := requestOf(e)
	switch e.Kind {
	case history.RequestSent:
		if user, role, ok := history.SplitPrincipal(e.Detail); ok {
			c.owners[r] = owner{user, role}
		}
	case history.RequestAnswered:
		delete(c.owners, r)
	default:
		c.look(e, r)
	}
}

// look finds out who has the bucket that a search is about to look at.
func (c *bucketsDistinct) look(e *history.Event, r request) {
	attribute := cluster.Attribute(e.Detail)
	who := ""
	if attribute != cluster.ByGroup {
		o, known := c.ownerOf(r)
		if !known {
			c.lack("nobody knows whose search %s on node %s was", e.Search, e.Node)
			return
		}
		switch attribute {
		case cluster.ByUsername:
			who = o.user
		case cluster.ByRole:
			who = o.role
		default:
			c.lack("attribute %q of search %s on node %s is unknown", e.Detail, e.Search, e.Node)
			return
		}
		if who == "" {
			c.add("a search without a principal has a bucket of one", "%v, group %s by %s, search %s, bucket %016x", lifeOf(e), e.Group, attribute, e.Search, e.Bucket)
			return
		}
	}
	c.pair(e, space{lifeOf(e), e.Group, attribute}, who)
}

// ownerOf returns who sent a search, or the one that started it: both have one
// principal.
func (c *bucketsDistinct) ownerOf(r request) (o owner, known bool) {
	for {
		if o, known = c.owners[r]; known {
			return o, true
		}
		outer, nested := coordinator.OuterName(r.search)
		if !nested {
			return owner{}, false
		}
		r.search = outer
	}
}

// pair holds a principal and a bucket to be each other's only one.
func (c *bucketsDistinct) pair(e *history.Event, s space, who string) {
	p := c.spaces[s]
	if p == nil {
		p = c.newPairs()
		c.spaces[s] = p
	}
	other, has := p.ownerOf[e.Bucket]
	if has && other != who {
		c.add("two principals share a bucket", "%v, group %s by %s, bucket %016x, search %s, principals %s and %s", s.life, s.group, s.attribute, e.Bucket, e.Search, other, who)
		return
	}
	bucket, has := p.bucketOf[who]
	switch {
	case has && bucket != e.Bucket:
		c.add("one principal has two buckets", "%v, group %s by %s, buckets %016x and %016x, search %s", s.life, s.group, s.attribute, bucket, e.Bucket, e.Search)
	case !has && c.known == c.most:
		c.lack("there are more than %d buckets of principals", c.most)
	case !has:
		c.known++
		p.bucketOf[who], p.ownerOf[e.Bucket] = e.Bucket, who
	}
}

func (c *bucketsDistinct) newPairs() *pairs {
	last := len(c.spare) - 1
	if last < 0 {
		return &pairs{map[string]uint64{}, map[uint64]string{}}
	}
	p := c.spare[last]
	c.spare = c.spare[:last]
	return p
}

func (c *bucketsDistinct) Finish(*Facts) Result { return c.result(c.Name()) }
