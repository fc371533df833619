package coordinator

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/wlmsim/wlmsim/cluster"
)

// NoShardAvailable is the kind of the failure of a shard of which the
// preference leaves no copy.
const NoShardAvailable cluster.Kind = "no_shard_available_action_exception"

// Preference says which copies of shards a search may use.
type Preference struct {
	shards []int               // numbers of the shards that are searched; nil: all
	copies func(s *state) bool // nil: any copy may be used
	named  string              // of _only_nodes: what was named, for the message
}

// state is what a preference looks at.
type state struct {
	node  *cluster.Node // that has the shard; nil if the cluster does not know it
	local bool          // it is the coordinator's own
}

// ParsePreference reads OpenSearch's preference parameter. Each shard has one
// copy here, so of OpenSearch's preferences those that only order copies change
// nothing: _local, _prefer_nodes, _primary, _primary_first, _replica_first and
// every text of a client's own. _shards:0,2 chooses shards; _only_local and
// _only_nodes refuse the copies on other nodes, and _replica all, since none is
// one.
func ParsePreference(text string) (Preference, error) {
	var p Preference
	if numbers, chosen := strings.CutPrefix(text, "_shards:"); chosen {
		numbers, rest, _ := strings.Cut(numbers, "|")
		p.shards = []int{}
		for number := range strings.SplitSeq(numbers, ",") {
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 {
				return p, cluster.Errorf(cluster.IllegalArgument, "For input string: %q in preference [%s]", number, text)
			}
			p.shards = append(p.shards, n)
		}
		text = rest
	}
	if !strings.HasPrefix(text, "_") {
		return p, nil
	}
	kind, argument, _ := strings.Cut(text, ":")
	switch kind {
	case "_local", "_prefer_nodes", "_primary", "_primary_first", "_replica_first":
	case "_only_local":
		p.copies = func(s *state) bool { return s.local }
	case "_replica":
		p.copies = func(*state) bool { return false }
	case "_only_nodes":
		names := strings.Split(argument, ",")
		p.named = argument
		p.copies = func(s *state) bool { return s.node != nil && slices.ContainsFunc(names, s.isNamed) }
	default:
		return p, cluster.Errorf(cluster.IllegalArgument, "no Preference for [%s]", text)
	}
	return p, nil
}

// isNamed says whether a node is meant by its name or id, or by a pattern of
// either.
func (s *state) isNamed(name string) bool {
	return cluster.MatchPattern(name, s.node.Name) || cluster.MatchPattern(name, s.node.ID)
}

// admits says whether a shard is searched, or why that is impossible.
func (p *Preference) admits(shard int) bool {
	return p.shards == nil || slices.Contains(p.shards, shard)
}

// refuses says why a copy must not be used, or nil.
func (p *Preference) refuses(s *state, index string, shard int) *cluster.Error {
	switch {
	case p.copies == nil || p.copies(s):
		return nil
	case p.named != "":
		return cluster.Errorf(cluster.IllegalArgument, "no data nodes with criteria [%s] found for shard: [%s][%d]", p.named, index, shard)
	}
	return cluster.Errorf(NoShardAvailable, "no shard available for [%s][%d] by the search's preference", index, shard)
}

// routed returns the shards of an index that the values of a routing lead to,
// comma-separated; nil for all if there is no routing.
func routed(routing string, shards int) []int {
	if routing == "" || shards == 0 {
		return nil
	}
	chosen := []int{}
	for value := range strings.SplitSeq(routing, ",") {
		chosen = append(chosen, ShardOf(value, shards))
	}
	return chosen
}

// ShardOf returns the shard of a document by its routing value, as OpenSearch
// does for an index that was created with so many shards and can be split: the
// hash chooses one of the shards that the index could be split into, at most
// 1,024 or else twice as many.
func ShardOf(routing string, shards int) int {
	splits := max(1, 10-bits.Len(uint(shards-1)))
	most := shards << splits
	at := int(int32(murmur3(utf16Bytes(routing)))) % most
	if at < 0 {
		at += most
	}
	return at / (most / shards)
}

// utf16Bytes are a text's UTF-16 code units, low byte first.
func utf16Bytes(text string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return b
}

// murmur3 is the 32-bit MurmurHash3 with seed 0.
func murmur3(data []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h := uint32(0)
	rest := data
	for ; len(rest) >= 4; rest = rest[4:] {
		k := binary.LittleEndian.Uint32(rest) * c1
		h ^= bits.RotateLeft32(k, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	k := uint32(0)
	for i := len(rest) - 1; i >= 0; i-- {
		k = k<<8 | uint32(rest[i])
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= uint32(len(data))
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
