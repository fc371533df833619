package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// seedRange is count seeds from one on, every so many-th. The zero value means
// that nothing was said.
type seedRange struct{ from, count, every uint64 }

func (r seedRange) at(i uint64) uint64 { return r.from + i*r.every }

// parseSeeds reads --seeds and --shard.
func parseSeeds(seeds, shard string) (seedRange, error) {
	if seeds == "" {
		if shard != "" {
			return seedRange{}, errors.New("--shard spreads seeds, and needs --seeds A..B")
		}
		return seedRange{}, nil
	}
	first, last, ok := strings.Cut(seeds, "..")
	a, errA := strconv.ParseUint(first, 10, 64)
	b, errB := strconv.ParseUint(last, 10, 64)
	switch {
	case !ok || errA != nil || errB != nil:
		return seedRange{}, fmt.Errorf("--seeds %q: want A..B, two numbers from 0 to %d", seeds, uint64(1<<64-1))
	case a > b:
		return seedRange{}, fmt.Errorf("--seeds %s: %d is over %d", seeds, a, b)
	case b-a >= maxRuns*maxShards:
		return seedRange{}, fmt.Errorf("--seeds %s: over %d seeds", seeds, maxRuns*maxShards)
	}
	r := seedRange{from: a, count: b - a + 1, every: 1}
	if shard == "" {
		return r, nil
	}
	return r.shard(shard)
}

// maxShards bounds over how many machines a campaign spreads.
const maxShards = 100_000

func (r seedRange) shard(text string) (seedRange, error) {
	place, of, ok := strings.Cut(text, "/")
	i, errI := strconv.ParseUint(place, 10, 64)
	n, errN := strconv.ParseUint(of, 10, 64)
	if !ok || errI != nil || errN != nil || n < 1 || n > maxShards || i >= n {
		return seedRange{}, fmt.Errorf("--shard %q: want I/N with N from 1 to %d, and I from 0 to N-1", text, maxShards)
	}
	if i >= r.count {
		return seedRange{every: n}, nil // more shards than seeds
	}
	return seedRange{from: r.from + i, count: (r.count - i + n - 1) / n, every: n}, nil
}
