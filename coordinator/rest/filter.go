package rest

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wlmsim/wlmsim/cluster"
)

// maxFilterPath is the greatest length of a filter_path, in bytes: as much as
// OpenSearch takes of a whole request line.
const maxFilterPath = 4096

// pathFilter is a filter_path parameter. What it excludes is left out first;
// of the rest only what it includes stays, if it includes anything. Arrays are
// looked through.
type pathFilter struct {
	exclude, include patterns
}

// patterns are dotted names with wildcards, segment by segment and one after
// the other. * stands for any part of a name, ** for any number of names.
type patterns struct {
	segments []string
	last     []bool // the segment ends its pattern
	begin    []bool // the segment begins its pattern
}

// parsePathFilter reads a comma list of patterns; those with a minus before
// them exclude. A dot after a backslash is part of a name.
func parsePathFilter(text string) (*pathFilter, error) {
	if len(text) > maxFilterPath {
		return nil, cluster.Errorf(cluster.IllegalArgument, "filter_path of %d bytes is longer than %d", len(text), maxFilterPath)
	}
	f := &pathFilter{}
	for pattern := range strings.SplitSeq(text, ",") {
		pattern = strings.TrimSpace(pattern)
		into := &f.include
		if excluded, minus := strings.CutPrefix(pattern, "-"); minus {
			pattern, into = excluded, &f.exclude
		}
		into.add(pattern)
	}
	return f, nil
}

func (p *patterns) add(pattern string) {
	if pattern == "" {
		return
	}
	first := true
	for pattern != "" {
		var segment string
		segment, pattern = cutSegment(pattern)
		p.segments = append(p.segments, segment)
		p.last = append(p.last, pattern == "")
		p.begin = append(p.begin, first)
		first = false
	}
}

// cutSegment cuts a pattern at its first dot that no backslash stands before.
func cutSegment(pattern string) (segment, rest string) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern) && pattern[i+1] == '.':
			i++
			b.WriteByte('.')
		case pattern[i] == '.':
			return b.String(), pattern[i+1:]
		default:
			b.WriteByte(pattern[i])
		}
	}
	return b.String(), ""
}

// below returns where the patterns stand after a name: at which segments, if
// at any, and whether the name ends one of them, so that all of its value is
// meant.
func (p *patterns) below(at []bool, name string) (next []bool, some, whole bool) {
	next = make([]bool, len(p.segments))
	var take func(i int)
	take = func(i int) {
		switch {
		case p.segments[i] == "**" && p.last[i]:
			whole = true
		case p.segments[i] == "**":
			next[i], some = true, true
			take(i + 1) // it may stand for no name at all
		case !wild(p.segments[i], name):
		case p.last[i]:
			whole = true
		default:
			next[i+1], some = true, true
		}
	}
	for i, here := range at {
		if here {
			take(i)
		}
	}
	return next, some, whole
}

// wild says whether a name fits a pattern in which * stands for any text.
func wild(pattern, name string) bool {
	before, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, before) {
		return false
	}
	name = name[len(before):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}

// apply returns what is left of compact JSON; of nothing an empty object or
// array.
func (f *pathFilter) apply(text []byte) []byte {
	if len(f.exclude.segments) > 0 {
		text = f.exclude.sift(text, true)
	}
	if len(f.include.segments) > 0 {
		text = f.include.sift(text, false)
	}
	return text
}

func (p *patterns) sift(text []byte, excluding bool) []byte {
	s := sieve{patterns: p, excluding: excluding}
	if s.value(text, p.begin) {
		return s.out
	}
	if text[0] == '[' {
		return []byte("[]")
	}
	return []byte("{}")
}

// sieve copies the parts of compact JSON that patterns leave in.
type sieve struct {
	*patterns
	excluding bool // the patterns name what is left out
	out       []byte
}

// value copies what is left of an object or an array and says whether that is
// anything. An empty one stays where patterns exclude.
func (s *sieve) value(text []byte, at []bool) bool {
	mark := len(s.out)
	s.out = append(s.out, text[0])
	some := s.excluding && len(text) == 2
	each(text, func(name, value []byte) {
		before := len(s.out)
		if some {
			s.out = append(s.out, ',')
		}
		if s.member(name, value, at) {
			some = true
		} else {
			s.out = s.out[:before]
		}
	})
	if !some {
		s.out = s.out[:mark]
		return false
	}
	s.out = append(s.out, text[len(text)-1])
	return true
}

// member copies what is left of a member of an object, or of an array's
// element, which has no name and takes no step along the patterns.
func (s *sieve) member(name, value []byte, at []bool) bool {
	next, some, whole := at, true, false
	if name != nil {
		next, some, whole = s.below(at, unquoted(name))
		s.out = append(append(s.out, name...), ':')
	}
	container := value[0] == '{' || value[0] == '['
	switch {
	case whole:
		if s.excluding {
			return false
		}
	case some && container:
		return s.value(value, next)
	case !s.excluding:
		return false
	}
	s.out = append(s.out, value...)
	return true
}

// unquoted returns the text of a JSON string that this API wrote itself.
func unquoted(quoted []byte) string {
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		panic("rest: an answer has a name that is no JSON string: " + string(quoted))
	}
	return string(text)
}

// each calls f for every member or element of a compact object or array; an
// element has no name.
func each(text []byte, f func(name, value []byte)) {
	for i := 1; i < len(text)-1; i++ { // a comma or the bracket stands behind each
		var name []byte
		if text[0] == '{' {
			end := valueEnd(text, i)
			name, i = text[i:end], end+1
		}
		end := valueEnd(text, i)
		f(name, text[i:end])
		i = end
	}
}

// valueEnd returns where the value that begins at i ends.
func valueEnd(text []byte, i int) int {
	level := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '{', '[':
			level++
		case '}', ']':
			if level == 0 {
				return i
			}
			level--
		case ',', ':':
			if level == 0 {
				return i
			}
		}
	}
	return i
}

// stringEnd returns the place of the quote that closes the one at i.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
