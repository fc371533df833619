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
	key  bucketKey
	hash uint64
	next *bucket // in the same slot, or in the list of spare ones
	held int     // permits
	// tried counts the increments on which no look has followed yet, or no
	// rollback. Only acquire: rollback has any.
	tried int
}

const (
	shardBits = 6
	minSlots  = 8
	// maxSpare bounds the drained buckets that a shard keeps for re-use.
	maxSpare = 16
)

// shard is a chained hash table of buckets. Its table is made when the first
// bucket comes, and follows their number both ways.
type shard struct {
	mu     sync.Mutex
	slots  []*bucket // a power of two, or none yet
	used   int
	spares *bucket
	spare  int
	_      [8]byte // a shard fills a cache line
}

// ledger holds every bucket of a node.
type ledger struct {
	seed   uint64
	shards [1 << shardBits]shard
}

func (l *ledger) shard(hash uint64) *shard { return &l.shards[hash&(1<<shardBits-1)] }

func (s *shard) slotLocked(hash uint64) **bucket {
	return &s.slots[hash>>shardBits&uint64(len(s.slots)-1)]
}

// findLocked returns the bucket of a key, or nil. Equal hashes are told apart
// by the whole key.
func (s *shard) findLocked(hash uint64, key *bucketKey) *bucket {
	if len(s.slots) == 0 {
		return nil
	}
	for b := *s.slotLocked(hash); b != nil; b = b.next {
		if b.hash == hash && b.key == *key {
			return b
		}
	}
	return nil
}

// addLocked makes the bucket of a key that has none.
func (s *shard) addLocked(hash uint64, key *bucketKey) *bucket {
	if s.used == len(s.slots) {
		s.resizeLocked(max(minSlots, 2*len(s.slots)))
	}
	b := s.spares
	if b == nil {
		b = new(bucket)
	} else {
		s.spares = b.next
		s.spare--
	}
	b.key, b.hash = *key, hash
	slot := s.slotLocked(hash)
	b.next, *slot = *slot, b
	s.used++
	return b
}

// dropLocked removes b if nothing is left in it.
func (s *shard) dropLocked(b *bucket) {
	if b.held != 0 || b.tried != 0 {
		return
	}
	slot := s.slotLocked(b.hash)
	for *slot != b {
		slot = &(*slot).next
	}
	*slot = b.next
	s.used--
	b.key, b.next = bucketKey{}, nil // a spare one keeps no name alive
	if s.spare < maxSpare {
		b.next, s.spares = s.spares, b
		s.spare++
	}
	if len(s.slots) > minSlots && s.used < len(s.slots)/8 {
		s.resizeLocked(max(minSlots, len(s.slots)/4))
	}
}

func (s *shard) resizeLocked(slots int) {
	old := s.slots
	s.slots = make([]*bucket, slots)
	for _, b := range old {
		for b != nil {
			next := b.next
			slot := s.slotLocked(b.hash)
			b.next, *slot = *slot, b
			b = next
		}
	}
}

// grantLocked puts a permit into b and makes p hold it.
func (s *shard) grantLocked(b *bucket, hash uint64, p *Permit) (held int) {
	b.held++
	p.shard, p.bucket, p.hash = s, b, hash
	return b.held
}

// giveBackLocked takes a permit out of b.
func (s *shard) giveBackLocked(b *bucket) (held int) {
	b.held--
	held = b.held
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
// returns how many permits the bucket holds. a is not kept.
type acquirer interface {
	acquire(a attempt, p *Permit) (held int, ok bool)
}

func newAcquirer(s Acquire, l *ledger, p *probe.Probe) acquirer {
	if s == AcquireRollback {
		return &rollback{l, p}
	}
	return &exact{l}
}

// exact checks and increments under the shard's lock.
type exact struct{ ledger *ledger }

func (e *exact) acquire(a attempt, p *Permit) (int, bool) {
	mustLimit(a.limit)
	s := e.ledger.shard(a.hash)
	s.mu.Lock()
	b := s.findLocked(a.hash, &a.key)
	if b == nil {
		b = s.addLocked(a.hash, &a.key)
	} else if b.held >= a.limit {
		held := b.held
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

func (r *rollback) acquire(a attempt, p *Permit) (int, bool) {
	mustLimit(a.limit)
	s := r.ledger.shard(a.hash)
	b := r.increment(s, &a)
	r.probe.At(a.event(probe.AcquireLook, 0, probe.ReadBucket|probe.WriteBucket))
	held, ok := r.look(s, b, &a, p)
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
	b := s.findLocked(a.hash, &a.key)
	if b == nil {
		b = s.addLocked(a.hash, &a.key)
	}
	b.tried++
	return b
}

func (r *rollback) look(s *shard, b *bucket, a *attempt, p *Permit) (held int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.held+b.tried > a.limit {
		return b.held, false
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
	for _, b := range s.slots {
		for ; b != nil; b = b.next {
			if b.held == 0 {
				continue
			}
			g := byGroup[b.key.group]
			byGroup[b.key.group] = GroupPermits{b.key.group, g.Buckets + 1, g.Held + b.held}
		}
	}
}
