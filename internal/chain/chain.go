package chain

import "iter"

// Place is an item's place in a [List], a field of the item. The zero value is
// on no list. It must not be copied while it is listed, and is on one list at a
// time.
type Place[T any] struct {
	item          *T // nil: not listed
	before, after *Place[T]
}

// Listed says whether the item is on a list.
func (p *Place[T]) Listed() bool { return p.item != nil }

// List is the items that were added and not taken out. The zero value is empty.
// It must not be copied once something was added.
type List[T any] struct {
	first, last *Place[T]
	length      int
}

// Add puts an item, which must not be listed, at the end; p is its place.
func (l *List[T]) Add(item *T, p *Place[T]) {
	p.item, p.before = item, l.last
	if l.last == nil {
		l.first = p
	} else {
		l.last.after = p
	}
	l.last = p
	l.length++
}

// Remove takes the item of a place out of this list. If it is not listed
// nothing happens.
func (l *List[T]) Remove(p *Place[T]) {
	if !p.Listed() {
		return
	}
	if p.before == nil {
		l.first = p.after
	} else {
		p.before.after = p.after
	}
	if p.after == nil {
		l.last = p.before
	} else {
		p.after.before = p.before
	}
	*p = Place[T]{}
	l.length--
}

// First returns the item that was added first; nil if there is none.
func (l *List[T]) First() *T {
	if l.first == nil {
		return nil
	}
	return l.first.item
}

// Len returns how many items are listed.
func (l *List[T]) Len() int { return l.length }

// All yields the items. Of the list only the item that is yielded may be taken
// out meanwhile.
func (l *List[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for p := l.first; p != nil; {
			next := p.after
			if !yield(p.item) {
				return
			}
			p = next
		}
	}
}
