package wlm

import "math/bits"

// Odd constants with about as many ones as zeros, from the digits of pi.
const (
	hashGroup = 0x243f6a8885a308d3
	hashBy    = 0x13198a2e03707345
	hashValue = 0xa4093822299f31d1
)

// hash mixes a key, eight bytes at a time. It is seeded and not that of
// package maphash, whose seed cannot be chosen: the same seed gives the same
// hashes in every run. Equal hashes of different keys do no harm.
func (k *bucketKey) hash(seed uint64) uint64 {
	h := hashText(seed^hashGroup, k.group)
	h = mix(h^uint64(len(k.attribute)), hashBy)
	return hashText(h^hashValue, k.value)
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func hashText(h uint64, s string) uint64 {
	n := len(s)
	if n < 8 {
		return mix(h^short(s), hashBy^uint64(n))
	}
	for i := 0; i < n-8; i += 8 {
		h = mix(h^word(s[i:]), hashValue)
	}
	return mix(h^word(s[n-8:]), hashBy^uint64(n))
}

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func short(s string) uint64 {
	var w uint64
	for i := range len(s) {
		w = w<<8 | uint64(s[i])
	}
	return w
}
