package scenario

// Changed returns a copy of f with a change, as if it had been written so: it
// is checked as a whole, its lines are those of [Print], and the traces that f
// has read it has too. The error, if any, is [Faults].
func (f *File) Changed(change func(*File)) (*File, error) {
	c := f.copied()
	change(c)
	name := "changed"
	if f.origin != nil {
		name = f.origin.name
	}
	g, err := Parse(name, Print(c))
	if err == nil && f.origin != nil {
		g.origin.dir, g.origin.traces = f.origin.dir, f.origin.traces
	}
	return g, err
}
