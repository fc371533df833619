package shrink

import (
	"context"
	"slices"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Least returns the smallest file that it can get to from a checked file by
// moves after which fails is true, and calls told for each smaller one on the
// way. done says that no move from it fails any more; without that, ctx ended
// first. fails must be true for f itself, which is not asked.
func Least(ctx context.Context, f *scenario.File, fails func(*scenario.File) bool, told func(*scenario.File)) (least *scenario.File, done bool) {
	s := &search{ctx: ctx, fails: fails, told: told, refused: map[string]bool{}}
	s.is(f)
	s.coarse()
	s.fine()
	return s.file, ctx.Err() == nil
}

// least is [Least] from a file that is nearly the least one.
func least(ctx context.Context, f *scenario.File, fails func(*scenario.File) bool, told func(*scenario.File)) (least *scenario.File, done bool) {
	s := &search{ctx: ctx, fails: fails, told: told, refused: map[string]bool{}}
	s.is(f)
	s.fine()
	return s.file, ctx.Err() == nil
}

// search is on its way to the least file.
type search struct {
	ctx     context.Context
	fails   func(*scenario.File) bool
	told    func(*scenario.File)
	refused map[string]bool // by text

	file *scenario.File
	size Size
}

func (s *search) is(f *scenario.File) { s.file, s.size = f, SizeOf(f) }

// try goes over to a file if it is a smaller one that fails.
func (s *search) try(g *scenario.File) bool {
	if g == nil || s.ctx.Err() != nil || SizeOf(g).Compare(s.size) >= 0 {
		return false
	}
	text := string(scenario.Print(g))
	if s.refused[text] || !s.fails(g) {
		s.refused[text] = true
		return false
	}
	s.is(g)
	s.told(g)
	return true
}

// coarse takes much away at once: nodes, again and again, since fewer of them
// make all that comes next cheap; and all that is said in one field, halves of
// it, quarters and so on.
func (s *search) coarse() {
	s.leap()
	for _, kind := range []int{item, option, number} {
		base := s.file
		var fields []string
		of := map[string][]move{}
		for _, m := range moves(base) {
			if m.kind != kind || !m.first {
				continue
			}
			if of[m.field] == nil {
				fields = append(fields, m.field)
			}
			of[m.field] = append(of[m.field], m)
		}
		var taken []move
		for _, field := range fields {
			s.halve(base, of[field], &taken)
		}
		s.leap()
	}
}

func (s *search) leap() {
	for _, leap := range leaps(s.file) {
		s.try(changed(s.file, leap))
	}
}

// halve tries to make some moves of a file at once, with those that were taken
// before, and else each half of them.
func (s *search) halve(base *scenario.File, some []move, taken *[]move) {
	if len(some) == 0 || s.ctx.Err() != nil {
		return
	}
	all := slices.Concat(*taken, some)
	if s.try(changed(base, together(all))) {
		*taken = all
		return
	}
	if middle := len(some) / 2; middle > 0 {
		s.halve(base, some[middle:], taken)
		s.halve(base, some[:middle], taken)
	}
}

// together makes moves of one file at once: the last one of the walk first, so
// that the places of the others stay where they are.
func together(some []move) func(*scenario.File) {
	some = slices.SortedFunc(slices.Values(some), func(a, b move) int { return b.order - a.order })
	return func(f *scenario.File) {
		for _, m := range some {
			m.change(f)
		}
	}
}

// fine makes single moves until none is left that fails.
func (s *search) fine() {
	for smaller := true; smaller; {
		smaller = false
		list := moves(s.file)
		for i := 0; i < len(list) && s.ctx.Err() == nil; i++ {
			if s.try(changed(s.file, list[i].change)) {
				// What comes next in the list moves up to this place.
				smaller = true
				list, i = moves(s.file), i-1
			}
		}
	}
}

// changed returns the changed file, or nil if there can be no such one.
func changed(f *scenario.File, change func(*scenario.File)) *scenario.File {
	g, err := f.Changed(change)
	if err != nil {
		return nil
	}
	return g
}
