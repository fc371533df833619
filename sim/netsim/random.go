package netsim

import "math/bits"

// random is a splitmix64 generator. Every message has one of its own, so that
// nothing that is drawn for one message moves what is drawn for another.
type random struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio, as splitmix64 has it

func (r *random) next() uint64 {
	r.state += golden
	return scramble(r.state)
}

// upTo draws a number in [0, most], evenly; most is below 2^64-1.
func (r *random) upTo(most uint64) uint64 {
	high, _ := bits.Mul64(r.next(), most+1)
	return high
}

// chance is true in the given share of draws. It always draws.
func (r *random) chance(share float64) bool {
	return float64(r.next()>>11)/(1<<53) < share
}

// message returns the generator of the numbered message.
func message(seed, number uint64) random {
	return random{state: scramble(seed + number*golden)}
}

// scramble is the output function of splitmix64.
func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// derive returns the seed of a stream of draws that has these names. Names are
// set apart, so that ("a", "bc") and ("ab", "c") differ.
func derive(seed uint64, names ...string) uint64 {
	h := scramble(seed)
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * 0x100000001b3 // FNV-1a
		}
		h = scramble(h ^ uint64(len(name)))
	}
	return h
}
