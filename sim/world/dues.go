package world

// dues is a heap of requests by their arrival; of one instant, by number.
type dues []due

type due struct {
	at int64 // nanoseconds, on the clock of the bubble
	r  *request
}

func (a due) before(b due) bool { return a.at < b.at || a.at == b.at && a.r.number < b.r.number }

func (d *dues) push(r *request) {
	*d = append(*d, due{at: r.due.UnixNano(), r: r})
	h := *d
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// pop takes the first one; there must be one.
func (d *dues) pop() *request {
	h := *d
	first, last := h[0].r, len(h)-1
	h[0], h[last] = h[last], due{}
	h = h[:last]
	*d = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
