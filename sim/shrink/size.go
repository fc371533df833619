package shrink

import (
	"cmp"
	"reflect"
	"regexp"
	"strconv"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// Size is how large a file is. Of two files the one with fewer parts is
// smaller; then the one with the lesser amount; then the one with less text.
type Size struct {
	// Parts counts what the file says: items of lists and mappings, and
	// values. A profile other than the default one counts as its switches, and
	// an exploration of a whole cluster for more than one of a node.
	Parts int
	// Amount adds up the nodes that are built, how large the numbers are, and
	// which nodes are named.
	Amount int
	// Text is the length of the printed file in bytes.
	Text int
}

// Compare returns -1 if a is smaller than b, 1 if it is larger, and else 0.
func (a Size) Compare(b Size) int {
	return cmp.Or(cmp.Compare(a.Parts, b.Parts), cmp.Compare(a.Amount, b.Amount), cmp.Compare(a.Text, b.Text))
}

// SizeOf measures a checked file.
func SizeOf(f *scenario.File) Size {
	s := Size{Text: len(scenario.Print(f))}
	said := *f
	if builds(f) {
		filled := f.Filled()
		said.Cluster.Managers, said.Cluster.Data = 0, 0
		s.Amount = filled.Cluster.Managers + filled.Cluster.Data
	}
	if explore.Whole(f) {
		s.Parts += 2 // more than the name of the one node
	}
	if f.Profile == wlm.Profiles()[0] {
		said.Profile = ""
	} else if f.Profile != "" {
		s.Parts += 4 * len(wlm.Switches{}.Names()) // more than they take one by one
	}
	s.add(reflect.ValueOf(said))
	return s
}

// builds says whether a file builds a cluster, and does not just explore a node.
func builds(f *scenario.File) bool { return f.Explore == nil || explore.Whole(f) }

// add measures a value and what is within it.
func (s *Size) add(v reflect.Value) {
	if v.IsZero() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		s.Parts++ // a value that is there may be all zeros
		s.add(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			s.Parts++
			s.add(v.Index(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			s.Parts++
			s.add(key)
			s.add(value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.add(v.Field(i))
			}
		}
	case reflect.String:
		s.Parts++
		for _, name := range nodeName.FindAllString(v.String(), -1) {
			s.Amount += standing(name)
		}
	default:
		s.Parts++
		if v.CanInt() {
			s.Amount += rank(v.Int())
		} else if v.CanFloat() {
			s.Amount += rank(int64(min(v.Float(), 1e18)))
		}
	}
}

// nodeName finds the names of nodes in a text.
var nodeName = regexp.MustCompile(`\b[md][1-9][0-9]{0,3}\b`)

// standing orders the names of nodes: m1, d1, m2, d2 and so on, from 0.
func standing(node string) int {
	number, _ := strconv.Atoi(node[1:]) // of nodeName
	if node[0] == 'm' {
		return 2 * (number - 1)
	}
	return 2*number - 1
}

// rank returns how many round numbers are below n.
func rank(n int64) int {
	count := 0
	for range roundBelow(n) {
		count++
	}
	return count
}

// roundBelow yields the round numbers below n, from 1 on: 1, 2, 5, 10 and so
// on.
func roundBelow(n int64) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		for power := int64(1); ; power *= 10 {
			for _, digit := range []int64{1, 2, 5} {
				if digit*power >= n || !yield(digit*power) {
					return
				}
			}
			if power > n/10 {
				return
			}
		}
	}
}

// below returns the largest round number below n, or 0.
func below(n int64) int64 {
	last := int64(0)
	for r := range roundBelow(n) {
		last = r
	}
	return last
}
