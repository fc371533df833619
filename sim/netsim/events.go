package netsim

// event is something that arrives: the head of a half of a stream, or a
// datagram.
type event struct {
	at   int64 // nanoseconds since the network was made
	seq  uint64
	half *half
	gram *datagram
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// events is a heap with four children a node: flatter than container/heap's,
// and without its interface calls.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	q, i := *h, len(*h)-1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&q[parent]) {
			break
		}
		q[i] = q[parent]
		i = parent
	}
	q[i] = e
}

func (h *events) pop() event {
	q := *h
	top, last := q[0], q[len(q)-1]
	q[len(q)-1] = event{}
	q = q[:len(q)-1]
	*h = q
	if len(q) > 0 {
		q.sink(last)
	}
	return top
}

// sink places e, starting from the root.
func (q events) sink(e event) {
	i := 0
	for {
		first := 4*i + 1
		if first >= len(q) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(q)); c++ {
			if q[c].before(&q[least]) {
				least = c
			}
		}
		if !q[least].before(&e) {
			break
		}
		q[i] = q[least]
		i = least
	}
	q[i] = e
}
