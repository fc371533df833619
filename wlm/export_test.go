package wlm

import (
	"math"

	"github.com/wlmsim/wlmsim/cluster"
)

// Acquire takes a permit of one key, hash included: what Admit does once it
// has decided.
func (t *Throttle) Acquire(group string, by cluster.Attribute, value string, limit int, p *Permit) bool {
	key := bucketKey{group: group, attribute: by, value: value}
	_, ok := t.acquirer.acquire(&attempt{key: key, hash: key.hash(t.ledger.seed), limit: limit}, p)
	return ok
}

// AcquireHashed is Acquire with a hash of the caller's, to make keys collide.
func (t *Throttle) AcquireHashed(hash uint64, group string, by cluster.Attribute, value string, limit int, p *Permit) bool {
	_, ok := t.acquirer.acquire(&attempt{key: bucketKey{group, by, value}, hash: hash, limit: limit}, p)
	return ok
}

// ReleaseBehindItsBack breaks the ledger's promise as no Permit can: it takes a
// permit out of the bucket, whoever holds it.
func (p *Permit) ReleaseBehindItsBack() {
	p.shard.mu.Lock()
	held := p.shard.giveBackLocked(p.bucket)
	p.shard.mu.Unlock()
	mustFit(held, math.MaxInt)
}

// Footprint counts what the ledger keeps: buckets, whether they hold permits
// or only names, slots of all tables, and spare buckets.
func (t *Throttle) Footprint() (buckets, slots, spares int) {
	for i := range t.ledger.shards {
		s := &t.ledger.shards[i]
		buckets += int(s.used)
		if s.first != (bucket{tag: s.first.tag, by: s.first.by}) {
			buckets++
		}
		slots += len(s.slots)
		spares += int(s.spare)
	}
	return buckets, slots, spares
}

// Join returns the text of a principal's tokens.
func Join(s PrincipalJoin, p Principal) string { return newJoiner(s).join(&p) }

// Value returns what a principal is throttled by.
func Value(s PrincipalJoin, c RoleChoice, p Principal, by cluster.Attribute) string {
	return newJoiner(s).value(&p, by, newChooser(c))
}

// CompareUTF16 is the order of role_choice: smallest.
func CompareUTF16(a, b string) int { return compareUTF16(a, b) }

// MustFit is the ledger's check of what a bucket holds.
func MustFit(held, limit int) { mustFit(held, limit) }
