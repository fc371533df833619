package wlm

import "math/bits"

// Constants with about as many ones as zeros, from the digits of pi.
const (
	hashFirst  = 0x243f6a8885a308d3
	hashSecond = 0x13198a2e03707344
	hashLast   = 0xa4093822299f31d1
)

// hash mixes a key, sixteen bytes at a time. It is seeded and not that of
// package maphash, whose seed cannot be chosen: the same seed gives the same
// hashes in every run. Equal hashes of different keys do no harm.
func (k *bucketKey) hash(seed uint64) uint64 {
	first := seed ^ hashFirst
	h := hashText(first, seed+uint64(len(k.attribute)), k.group) // the attributes' lengths differ
	h = hashText(first, h^hashSecond, k.value)
	return mix(h, hashLast) // one product of a short value leaves its low bits uneven
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func hashText(first, h uint64, s string) uint64 {
	first ^= uint64(len(s))
	for len(s) > 16 {
		h = mix(word(s)^first, word(s[8:])^h)
		s = s[16:]
	}
	if len(s) >= 8 {
		return mix(word(s)^first, word(s[len(s)-8:])^h)
	}
	return mix(short(s)^first, h^hashFirst)
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
