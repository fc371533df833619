package netsim

// ring is a first-in, first-out buffer that grows to what is in it, and gives
// a large array back once it is empty.
type ring[T any] struct {
	array []T // its length is a power of two, or zero
	first int
	len   int
}

const (
	minRing  = 8
	keepRing = 1 << 14 // an array larger than this is not kept when empty
)

// at returns a pointer to the i-th element.
func (r *ring[T]) at(i int) *T { return &r.array[(r.first+i)&(len(r.array)-1)] }

func (r *ring[T]) push(v T) {
	r.grow(1)
	r.len++
	*r.at(r.len - 1) = v
}

func (r *ring[T]) pop() T {
	v := *r.at(0)
	var zero T
	*r.at(0) = zero
	r.drop(1)
	return v
}

// append puts all of v behind what is there.
func (r *ring[T]) append(v []T) {
	r.grow(len(v))
	end := (r.first + r.len) & (len(r.array) - 1)
	n := copy(r.array[end:], v)
	copy(r.array, v[n:])
	r.len += len(v)
}

// copyTo copies the first elements into v.
func (r *ring[T]) copyTo(v []T) {
	n := copy(v, r.array[r.first:])
	copy(v[n:], r.array)
}

// drop forgets the first n elements.
func (r *ring[T]) drop(n int) {
	r.len -= n
	if r.len > 0 {
		r.first = (r.first + n) & (len(r.array) - 1)
		return
	}
	r.first = 0
	if len(r.array) > keepRing {
		r.array = nil
	}
}

func (r *ring[T]) grow(more int) {
	if r.len+more <= len(r.array) {
		return
	}
	size := max(len(r.array), minRing)
	for size < r.len+more {
		size *= 2
	}
	array := make([]T, size)
	r.copyTo(array[:r.len])
	r.array, r.first = array, 0
}
