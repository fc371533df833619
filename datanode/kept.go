package datanode

import (
	"cmp"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// keptShard is what a node keeps of a shard for a scroll or a point in time
// (OpenSearch's reader context).
type keptShard struct {
	id      wire.ContextID
	shard   wire.ShardID
	point   bool
	matches stream // what the query of a scroll finds
	taken   int    // hits of a scroll that went to the client

	text      string // of a point
	created   time.Time
	keepAlive time.Duration
	expires   time.Time // unless it is in use
	users     int       // searches that use it
}

type keptKey struct {
	id    wire.ContextID
	shard wire.ShardID
}

// kept are the contexts of a node. Its owner takes the lock and reads the
// clock. One whose time is over counts until somebody looks for room, or for
// it: there is no reaper.
type kept struct {
	shards  map[keptKey]*keptShard
	scrolls int
	points  int
}

// open keeps a shard, or says that there is no room.
func (k *kept) open(s *keptShard, most int, now time.Time) *cluster.Error {
	count := k.count(s.point)
	if *count >= most {
		k.expire(now)
	}
	if *count >= most {
		return noRoom(s.point, most)
	}
	if k.shards == nil {
		k.shards = map[keptKey]*keptShard{}
	}
	key := keptKey{s.id, s.shard}
	if k.shards[key] != nil {
		return cluster.Errorf(cluster.IllegalArgument, "the context of shard %v is open already", s.shard)
	}
	s.created, s.expires, s.users = now, now.Add(s.keepAlive), 1
	k.shards[key] = s
	*count++
	return nil
}

func (k *kept) count(point bool) *int {
	if point {
		return &k.points
	}
	return &k.scrolls
}

func noRoom(point bool, most int) *cluster.Error {
	what, key := "scroll", cluster.SettingMaxScrolls
	if point {
		what, key = "Point In Time", cluster.SettingMaxPoints
	}
	return cluster.Errorf(cluster.TooMany, "Trying to create too many %s contexts. Must be less than or equal to: [%d]. "+
		"This limit can be set by changing the [%s] setting.", what, most, key)
}

// use returns a context for a search, which calls [keptShard.leave] when it is
// done; nil if it is not there any more.
func (k *kept) use(id wire.ContextID, shard wire.ShardID, keepAlive time.Duration, now time.Time) *keptShard {
	s := k.shards[keptKey{id, shard}]
	if s == nil || s.over(now) {
		return nil
	}
	if keepAlive > 0 {
		s.keepAlive = keepAlive
	}
	s.users++
	return s
}

// over says whether a context's time is over.
func (s *keptShard) over(now time.Time) bool { return s.users == 0 && !now.Before(s.expires) }

// leave ends one use: the context's time begins anew.
func (s *keptShard) leave(now time.Time) {
	s.users--
	s.expires = now.Add(s.keepAlive)
}

// end drops a context and says whether it was there.
func (k *kept) end(id wire.ContextID, shard wire.ShardID, now time.Time) bool {
	s := k.shards[keptKey{id, shard}]
	if s == nil {
		return false
	}
	over := s.over(now)
	k.drop(s)
	return !over
}

func (k *kept) drop(s *keptShard) {
	delete(k.shards, keptKey{s.id, s.shard})
	*k.count(s.point)--
}

// expire drops every context whose time is over.
func (k *kept) expire(now time.Time) {
	for _, s := range k.shards {
		if s.over(now) {
			k.drop(s)
		}
	}
}

// endScrolls drops every scroll context and returns how many there were.
func (k *kept) endScrolls(now time.Time) (ended int) {
	k.expire(now)
	for _, s := range k.shards {
		if !s.point {
			k.drop(s)
			ended++
		}
	}
	return ended
}

// list returns the points in time, each once.
func (k *kept) list(now time.Time) []wire.Point {
	k.expire(now)
	byText := map[string]*keptShard{}
	for _, s := range k.shards {
		if first := byText[s.text]; s.point && (first == nil || s.created.Before(first.created)) {
			byText[s.text] = s
		}
	}
	points := make([]wire.Point, 0, len(byText))
	for text, s := range byText {
		points = append(points, wire.Point{Text: text, Created: s.created.UnixMilli(), KeepAlive: s.keepAlive})
	}
	slices.SortFunc(points, func(a, b wire.Point) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Text, b.Text))
	})
	return points
}

// housekeep does what a request asks of contexts alone. It takes no worker and
// no time.
func (d *DataNode) housekeep(r *wire.SearchRequest) *wire.SearchAnswer {
	now := time.Now()
	answer := &wire.SearchAnswer{}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Phase {
	case wire.FreeScrolls:
		answer.Freed = d.kept.endScrolls(now)
		return answer
	case wire.ListPoints:
		answer.Points = d.kept.list(now)
		return answer
	}
	answer.Shards = make([]wire.ShardAnswer, len(r.Shards))
	for i, shard := range r.Shards {
		answer.Shards[i].Shard = shard
		if r.Phase == wire.Free {
			if d.kept.end(r.Context, shard, now) {
				answer.Freed++
			}
			continue
		}
		if s := d.kept.use(r.Context, shard, 0, now); s == nil || i >= len(r.Taken) {
			answer.Shards[i].Failure = missing(r.Context)
		} else {
			s.taken += r.Taken[i]
			s.leave(now)
		}
	}
	return answer
}

func missing(id wire.ContextID) *cluster.Error {
	return cluster.Errorf(wire.ContextMissing, "No search context found for id [%d]", id.Number)
}

// keep finds or opens the context of a shard for a request that is planned.
func (d *DataNode) keep(r *wire.SearchRequest, shard wire.ShardID, bounds *cluster.State) (*keptShard, *cluster.Error) {
	limits := bounds.Scrolls()
	if r.Point != "" {
		limits = bounds.Points()
	}
	if limits.KeepAlive >= 0 && r.KeepAlive > limits.KeepAlive {
		return nil, keepsTooLong(r.Point != "", r.KeepAlive, limits.KeepAlive)
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Phase == wire.Query {
		s := d.kept.use(r.Context, shard, r.KeepAlive, now)
		if s == nil {
			return nil, missing(r.Context)
		}
		return s, nil
	}
	s := &keptShard{id: r.Context, shard: shard, point: r.Phase == wire.OpenPoint, text: r.Point, keepAlive: r.KeepAlive}
	if !s.point {
		s.matches = placeOf(shard).matching(r.Query)
	}
	if why := d.kept.open(s, limits.Most, now); why != nil {
		return nil, why
	}
	return s, nil
}

// release ends the use of contexts. Those that a search which failed has opened
// go with it, since nobody will ever hear of them.
func (d *DataNode) release(r *wire.SearchRequest, used []*keptShard, failed bool) {
	if used == nil {
		return
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range used {
		if s == nil {
			continue
		}
		s.leave(now)
		if failed && r.Phase != wire.Query && d.kept.shards[keptKey{s.id, s.shard}] == s {
			d.kept.drop(s)
		}
	}
}

func keepsTooLong(point bool, asked, most time.Duration) *cluster.Error {
	key := cluster.SettingMaxKeepAlive
	if point {
		key = cluster.SettingMaxPointKeepAlive
	}
	return cluster.Errorf(cluster.IllegalArgument, "Keep alive for request (%s) is too large. It must be less than (%s). "+
		"This limit can be set by changing the [%s] cluster level setting.", cluster.FormatTime(asked), cluster.FormatTime(most), key)
}
