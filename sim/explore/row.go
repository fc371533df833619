package explore

import (
	"math/rand/v2"
	"slices"
)

// row is the schedules that an exploration has yet to execute, in order. A part
// of it can be executed without the part before.
type row interface {
	// chooser decides the turns of the next schedule.
	chooser() chooser
	// next goes on to the schedule after that one; false: it was the last.
	next() bool
	// split cuts the end of the row off and returns it, if there is a good place
	// to cut: nil, and the row is as before.
	split() row
}

// chooser implements [row].
func (d *dfs) chooser() chooser { return d }

// split implements [row]. A cut is between two points of the path: what is left
// to explore below it, and what above. It is made in the middle of the points
// where something is left, since the higher a point the more is below it.
func (d *dfs) split() row {
	var left []int
	for k := d.floor; k < d.depth; k++ {
		p := d.path[k]
		p.tried |= 1 << p.choice
		if d.open(&p) != 0 {
			left = append(left, k)
		}
	}
	if len(left) == 0 {
		return nil
	}
	above := &dfs{reduce: d.reduce, preemptions: d.preemptions, names: d.names, floor: d.floor}
	d.floor = left[len(left)/2] + 1
	above.path, above.depth = copied(d.path[:d.floor]), d.floor
	above.next() // there is one
	return above
}

// copied returns a path that shares no memory with another.
func copied(path []point) []point {
	path = slices.Clone(path)
	for i := range path {
		path[i].steps = slices.Clone(path[i].steps)
	}
	return path
}

// draws is a row of schedules that are drawn, each by a source of its own that
// its number gives: what one draws moves nothing in another.
type draws struct {
	seed     uint64
	from, to int // numbers
	// with returns who draws by a source.
	with func(*rand.Rand) chooser
}

// chooser implements [row].
func (d *draws) chooser() chooser {
	return d.with(rand.New(rand.NewPCG(d.seed, mixed(uint64(d.from)))))
}

// next implements [row].
func (d *draws) next() bool {
	d.from++
	return d.from < d.to
}

// drawsAtOnce is how many schedules the beginning of a row of draws has when its
// end is cut off.
const drawsAtOnce = 64

// split implements [row].
func (d *draws) split() row {
	if d.to-d.from <= drawsAtOnce {
		return nil
	}
	rest := *d
	rest.from = d.from + drawsAtOnce
	d.to = rest.from
	return &rest
}

// mixed spreads the bits of a number, so that numbers in a row make sources that
// have nothing to do with one another. It is the finalizer of splitmix64: Steele,
// Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
