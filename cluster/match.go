package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// IndexOptions say how an expression of indices is read. The zero value is how
// a search reads it that says nothing of it. Source: OpenSearch's parameters
// ignore_unavailable, allow_no_indices and expand_wildcards.
type IndexOptions struct {
	// IgnoreUnavailable leaves a name out that no index has, in place of
	// refusing the whole expression.
	IgnoreUnavailable bool
	// RefuseNone refuses a pattern that no index fits, and an expression that
	// stands for no index at all.
	RefuseNone bool
	Wildcards  Wildcards
}

// Wildcards say what a pattern stands for.
type Wildcards uint8

const (
	// ExpandOpen: the indices that fit. All are open here, and none is hidden.
	ExpandOpen Wildcards = iota
	// ExpandClosed: the closed ones alone, of which there are none.
	ExpandClosed
	// ExpandNone: nothing; a pattern is a name like any other.
	ExpandNone
)

// ParseWildcards reads a value of expand_wildcards: a list with commas of open,
// closed, hidden, none and all, of which none takes back what is before it.
func ParseWildcards(text string) (Wildcards, error) {
	open, closed := false, false
	for word := range strings.SplitSeq(text, ",") {
		switch word {
		case "open":
			open = true
		case "closed":
			closed = true
		case "hidden": // says nothing of which indices, but of hidden ones among them
		case "none":
			open, closed = false, false
		case "all":
			open, closed = true, true
		default:
			return ExpandOpen, Errorf(IllegalArgument, "No valid expand wildcard value [%s]", word)
		}
	}
	switch {
	case open:
		return ExpandOpen, nil
	case closed:
		return ExpandClosed, nil
	}
	return ExpandNone, nil
}

// MatchIndices returns the indices that an expression of a search names: ""
// and "_all" mean all of them, a name must exist, a pattern with '*' may match
// none. The result is sorted by name, without repeats, and must not be changed.
func (s *State) MatchIndices(expression string) ([]*Index, error) {
	return s.MatchIndicesBy(expression, IndexOptions{})
}

// MatchIndicesBy is [State.MatchIndices] with options. What they refuse is an
// error of kind [IndexNotFound].
func (s *State) MatchIndicesBy(expression string, o IndexOptions) ([]*Index, error) {
	if expression == "" {
		expression = everything
	}
	if expression == everything && o == (IndexOptions{}) {
		return s.indices, nil
	}
	var found []*Index
	for part := range strings.SplitSeq(expression, ",") {
		fits, err := s.part(part, o)
		if err != nil {
			return nil, err
		}
		found = append(found, fits...)
	}
	if len(found) == 0 && o.RefuseNone {
		return nil, noSuchIndex(expression)
	}
	slices.SortFunc(found, func(a, b *Index) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(found), nil
}

// everything is the word that stands for all indices.
const everything = "_all"

func noSuchIndex(part string) error { return Errorf(IndexNotFound, "no such index [%s]", part) }

// part resolves one part of an expression.
func (s *State) part(part string, o IndexOptions) (fits []*Index, err error) {
	pattern := part == everything || o.Wildcards != ExpandNone && strings.Contains(part, "*")
	if !pattern {
		x := s.Index(part)
		switch {
		case x != nil:
			return []*Index{x}, nil
		case o.IgnoreUnavailable:
			return nil, nil
		}
		return nil, noSuchIndex(part)
	}
	if o.Wildcards == ExpandOpen {
		for _, x := range s.indices {
			if part == everything || MatchPattern(part, x.Name) {
				fits = append(fits, x)
			}
		}
	}
	if len(fits) == 0 && o.RefuseNone {
		return nil, noSuchIndex(part)
	}
	return fits, nil
}
