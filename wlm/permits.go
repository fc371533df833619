package wlm

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// bucketKey names a bucket. The value is "" where the group shares one.
type bucketKey struct {
	group     string
	attribute cluster.Attribute
	value     string
}

// bucket is the permits of one key. Its shard's lock guards it.
type bucket struct {
	tag  uint32 // of the key's hash, to find it in a table
	held int32  // permits; memory ends before it does
	// tried counts the increments on which no look has followed yet, or no
	// rollback. Only acquire: rollback has any.
	tried        int32
	by           uint8 // the length of the attribute, which tells it from the others
	group, value string
}

// free says that nothing is left in the bucket.
func (b *bucket) free() bool { return b.held == 0 && b.tried == 0 }

func (b *bucket) is(tag uint32, key *bucketKey) bool {
	return b.tag == tag && b.value == key.value && b.group == key.group && b.by == uint8(len(key.attribute))
}

func (b *bucket) begin(tag uint32, key *bucketKey) {
	b.tag, b.by, b.group, b.value = tag, uint8(len(key.attribute)), key.group, key.value
}

// entry is a bucket of a table.
type entry struct {
	bucket
	next *entry // in the same slot, or in the list of spare ones
}

// DefaultLocks is how many locks guard the buckets unless a Config says
// otherwise.
const DefaultLocks = 64

const (
	minSlots = 8
	// maxSpare bounds the drained buckets that a shard keeps for re-use.
	maxSpare = 16
)

// shard is a bucket, and a chained hash table of those that came while that one
// was in use. Its table is made when the first of them comes, and follows their
// number both ways. What a search touches while there is no such bucket is one
// cache line, which is what its price on several processors hangs on: each line
// that another one has written costs as much as everything else.
type shard struct {
	mu    sync.Mutex
	used  int32 // buckets of the table
	spare int32
	first bucket

	slots  []*entry // a power of two, or none yet
	spares *entry
	_      [32]byte // a shard fills two cache lines
}

// ledger holds every bucket of a node.
type ledger struct {
	shards []shard // a power of two, so that their lines are not each other's
	seed   uint64
}

func (l *ledger) shard(hash uint64) *shard { return &l.shards[hash&uint64(len(l.shards)-1)] }

// tagOf is a part of a hash that does not choose the shard, of up to 64.
func tagOf(hash uint64) uint32 { return uint32(hash >> 6) }

func (s *shard) slotLocked(tag uint32) **entry { return &s.slots[tag&uint32(len(s.slots)-1)] }

// findLocked returns the bucket of a key, or nil. Equal hashes are told apart
// by the whole key.
func (s *shard) findLocked(tag uint32, key *bucketKey) *bucket {
	if s.first.is(tag, key) { // a free one has no group
		return &s.first
	}
	if s.used == 0 {
		return nil
	}
	for e := *s.slotLocked(tag); e != nil; e = e.next {
		if e.is(tag, key) {
			return &e.bucket
		}
	}
	return nil
}

// addLocked makes the bucket of a key that has none.
func (s *shard) addLocked(tag uint32, key *bucketKey) *bucket {
	if s.first.free() {
		s.first.begin(tag, key)
		return &s.first
	}
	if int(s.used) == len(s.slots) {
		s.resizeLocked(max(minSlots, 2*len(s.slots)))
	}
	e := s.spares
	if e == nil {
		e = new(entry)
	} else {
		s.spares = e.next
		s.spare--
	}
	e.begin(tag, key)
	slot := s.slotLocked(tag)
	e.next, *slot = *slot, e
	s.used++
	return &e.bucket
}

// dropLocked removes b if nothing is left in it.
func (s *shard) dropLocked(b *bucket) {
	if !b.free() {
		return
	}
	if b == &s.first {
		b.group, b.value = "", "" // a free one keeps no name alive
		return
	}
	slot := s.slotLocked(b.tag)
	for &(*slot).bucket != b {
		slot = &(*slot).next
	}
	e := *slot
	*slot = e.next
	s.used--
	*e = entry{}
	if s.spare < maxSpare {
		e.next, s.spares = s.spares, e
		s.spare++
	}
	if used := int(s.used); len(s.slots) > minSlots && used < len(s.slots)/8 {
		s.resizeLocked(max(minSlots, len(s.slots)/4))
	}
}

func (s *shard) resizeLocked(slots int) {
	old := s.slots
	s.slots = make([]*entry, slots)
	for _, e := range old {
		for e != nil {
			next := e.next
			slot := s.slotLocked(e.tag)
			e.next, *slot = *slot, e
			e = next
		}
	}
}

// grantLocked puts a permit into b and makes p hold it.
func (s *shard) grantLocked(b *bucket, hash uint64, p *Permit) (held int) {
	b.held++
	p.shard, p.bucket, p.hash = s, b, hash
	return int(b.held)
}

// giveBackLocked takes a permit out of b.
func (s *shard) giveBackLocked(b *bucket) (held int) {
	b.held--
	held = int(b.held)
	s.dropLocked(b)
	return held
}

// mustFit panics, outside of the lock, if a bucket holds what it never may.
func mustFit(held, limit int) {
	if held < 0 || held > limit {
		panic(fmt.Sprintf("wlm: a bucket holds %d permits, which is not between 0 and %d", held, limit))
	}
}

// mustLimit panics for a limit that no search may have been judged by, before
// a bucket is made.
func mustLimit(limit int) {
	if limit < 1 {
		panic(fmt.Sprintf("wlm: a permit was asked for under a limit of %d", limit))
	}
}

// attempt is one search that needs a permit.
type attempt struct {
	key     bucketKey
	hash    uint64
	limit   int
	search  string
	version uint64
}

func (a *attempt) event(step probe.Step, held int, touches probe.Touch) probe.Event {
	return probe.Event{Step: step, Group: a.key.group, Search: a.search, Version: a.version,
		Bucket: a.hash, Held: held, Limit: a.limit, Detail: string(a.key.attribute), Touches: touches}
}

// acquirer takes a permit for p, or finds the bucket full. Either way it
// returns how many permits the bucket holds. a is not kept. It is one of the
// two rather than an interface, through which a would have to be copied: an
// eighth of the time.
type acquirer struct {
	exact    exact
	rollback *rollback // nil: exact
}

func (q *acquirer) acquire(a *attempt, p *Permit) (held int, ok bool) {
	if q.rollback != nil {
		return q.rollback.acquire(a, p)
	}
	return q.exact.acquire(a, p)
}

func newAcquirer(s Acquire, l *ledger, p *probe.Probe) acquirer {
	if s == AcquireRollback {
		return acquirer{rollback: &rollback{l, p}}
	}
	return acquirer{exact: exact{l}}
}

// exact checks and increments under the shard's lock.
type exact struct{ ledger *ledger }

func (e *exact) acquire(a *attempt, p *Permit) (int, bool) {
	mustLimit(a.limit)
	s := e.ledger.shard(a.hash)
	s.mu.Lock()
	b := s.findLocked(tagOf(a.hash), &a.key)
	if b == nil {
		b = s.addLocked(tagOf(a.hash), &a.key)
	} else if held := int(b.held); held >= a.limit {
		s.mu.Unlock()
		return held, false
	}
	held := s.grantLocked(b, a.hash, p)
	s.mu.Unlock()
	mustFit(held, a.limit)
	return held, true
}

// rollback is the pull request's way: the increments of searches that will be
// refused count until they are taken back, so a search that looks meanwhile may
// be refused although there is room. A look that finds the count within the
// limit grants at once, and the count is never less than what was granted, so
// no permit too many is ever given.
type rollback struct {
	ledger *ledger
	probe  *probe.Probe
}

func (r *rollback) acquire(a *attempt, p *Permit) (int, bool) {
	mustLimit(a.limit)
	s := r.ledger.shard(a.hash)
	b := r.increment(s, a)
	r.probe.At(a.event(probe.AcquireLook, 0, probe.ReadBucket|probe.WriteBucket))
	held, ok := r.look(s, b, a, p)
	if ok {
		mustFit(held, a.limit)
		return held, true
	}
	r.probe.At(a.event(probe.AcquireRollback, held, probe.WriteBucket))
	r.takeBack(s, b)
	return held, false
}

func (r *rollback) increment(s *shard, a *attempt) *bucket {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.findLocked(tagOf(a.hash), &a.key)
	if b == nil {
		b = s.addLocked(tagOf(a.hash), &a.key)
	}
	b.tried++
	return b
}

func (r *rollback) look(s *shard, b *bucket, a *attempt, p *Permit) (held int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := int(b.held); held+int(b.tried) > a.limit {
		return held, false
	}
	b.tried--
	return s.grantLocked(b, a.hash, p), true
}

func (r *rollback) takeBack(s *shard, b *bucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.tried--
	s.dropLocked(b)
}

// Permit is one search's right to run, in memory that the search owns. The
// zero value holds nothing. It must not be copied. After Release it may serve
// another Admit, once nobody can release the former use any more.
type Permit struct {
	_      noCopy
	shard  *shard  // nil until a permit was granted
	bucket *bucket // nil unless the permit is held; the shard's lock guards it
	hash   uint64
	// counted is written by the search's own Admit, before it starts another.
	counted bool
}

// noCopy makes go vet report a copy.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Counted says whether the throttle counted the last search that was admitted
// with p: it was given a permit, it was observed under monitor: observes, or
// its parent was counted. It stays true after Release.
func (p *Permit) Counted() bool { return p.counted }

// Held says whether the permit is held: false before Admit, after an Admit
// that needed none or was refused, and after Release.
func (p *Permit) Held() bool {
	if p.shard == nil {
		return false
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.bucket != nil
}

// Release gives the permit back and says whether this call did: false if there
// was none or it was given back before. The bucket's lock decides which of
// several calls it is, so that no flag of the permit's own is needed.
func (p *Permit) Release() bool {
	s := p.shard
	if s == nil {
		return false
	}
	s.mu.Lock()
	b := p.bucket
	if b == nil {
		s.mu.Unlock()
		return false
	}
	p.bucket = nil
	held := s.giveBackLocked(b)
	s.mu.Unlock()
	mustFit(held, math.MaxInt)
	return true
}

// Bucket returns the hash of the bucket's key, as steps name it; 0 if no
// permit was ever held.
func (p *Permit) Bucket() uint64 { return p.hash }

// GroupPermits counts what a group's searches hold.
type GroupPermits struct {
	Group   string // id
	Buckets int    // with at least one permit
	Held    int
}

// Permits returns the groups that hold permits, sorted by id. It looks at one
// part of the ledger after another, so permits that come and go meanwhile may
// be seen or not.
func (t *Throttle) Permits() []GroupPermits {
	byGroup := map[string]GroupPermits{}
	for i := range t.ledger.shards {
		t.ledger.shards[i].sum(byGroup)
	}
	sums := slices.AppendSeq(make([]GroupPermits, 0, len(byGroup)), maps.Values(byGroup))
	slices.SortFunc(sums, func(a, b GroupPermits) int { return cmp.Compare(a.Group, b.Group) })
	return sums
}

func (s *shard) sum(byGroup map[string]GroupPermits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first.addTo(byGroup)
	for _, e := range s.slots {
		for ; e != nil; e = e.next {
			e.addTo(byGroup)
		}
	}
}

func (b *bucket) addTo(byGroup map[string]GroupPermits) {
	if b.held > 0 {
		g := byGroup[b.group]
		byGroup[b.group] = GroupPermits{b.group, g.Buckets + 1, g.Held + int(b.held)}
	}
}
