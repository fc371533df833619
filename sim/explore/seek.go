package explore

// seek asks whether what was seen is enough.
type seek struct {
	t     *table
	o     Options
	known int // news when it was asked last
}

// enough says whether what was seen so far is all that is asked for.
func (s *seek) enough() bool {
	if s.o.Until == nil || s.known == s.t.news {
		return false
	}
	s.known = s.t.news
	return s.o.Until(s.t.result(s.o))
}

// loose follows a schedule as far as that goes: it passes over turns of lanes
// that cannot go, and goes on without preemptions where the schedule ends.
type loose struct {
	lanes []int
	at    int // in lanes
}

// choose implements [chooser].
func (l *loose) choose(_ int, enabled uint64, _ []step, last int) (int, error) {
	for l.at < len(l.lanes) {
		next := l.lanes[l.at]
		l.at++
		if enabled&(1<<next) != 0 {
			return next, nil
		}
	}
	return onward(enabled, last), nil
}

// follow executes a schedule of another file, as far as it fits: lanes that are
// unknown here are passed over as well.
func (t *table) follow(s Schedule) error {
	index := map[string]int{}
	for i, name := range t.lanes {
		index[name] = i
	}
	l := &loose{}
	for _, name := range s {
		if i, ok := index[name]; ok {
			l.lanes = append(l.lanes, i)
		}
	}
	return t.execute(l)
}
