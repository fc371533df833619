package shrink

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// The moves are tried in this order: what makes the next tries cheap first.
const (
	node   = iota // nodes, and their names
	chunk         // several items of a list, or all of it
	item          // one item
	option        // what may be left out
	number        // a lesser number
)

// move changes a file into one that may be smaller.
type move struct {
	kind   int
	items  int    // of a chunk
	first  bool   // it takes the most away at its place
	field  string // that it is about, as of all items of a list
	order  int    // of the walk through the file
	change func(*scenario.File)
}

// leastTime is what times are not shortened below, but to 0s: a cluster whose
// work takes no time never gets past an instant.
const leastTime = int64(time.Millisecond)

// Moves returns every file that is one move smaller than a checked one, in the
// order in which they are tried: with fewer nodes or others in their place,
// without some items of a list or all that says a name, without one item, without
// something that may be left out, or with a lesser number. Each is checked.
func Moves(f *scenario.File) []*scenario.File {
	var all []*scenario.File
	size := SizeOf(f)
	for _, m := range moves(f) {
		if g := changed(f, m.change); g != nil && SizeOf(g).Compare(size) < 0 {
			all = append(all, g)
		}
	}
	return all
}

func moves(f *scenario.File) []move {
	w := walker{}
	w.nodes(f)
	w.profile(f)
	w.gaps(f)
	w.names(f)
	w.value(reflect.ValueOf(f).Elem(), nil)
	slices.SortStableFunc(w.all, func(a, b move) int {
		if a.kind != b.kind {
			return a.kind - b.kind
		}
		return b.items - a.items
	})
	return w.all
}

// walker collects the moves of a file.
type walker struct {
	all   []move
	field string
}

func (w *walker) add(kind, items int, first bool, change func(*scenario.File)) {
	w.all = append(w.all, move{kind, items, first, w.field, len(w.all), change})
}

// at adds a move that changes the value at a place.
func (w *walker) at(kind, items int, first bool, p place, change func(reflect.Value)) {
	p = slices.Clone(p)
	w.add(kind, items, first, func(f *scenario.File) { p.edit(reflect.ValueOf(f).Elem(), change) })
}

// nodes adds the moves to fewer nodes, and to earlier ones in the place of
// those that are named.
func (w *walker) nodes(f *scenario.File) {
	if !builds(f) {
		return
	}
	for _, leap := range leaps(f) {
		w.add(node, 0, true, leap)
	}
	filled := f.Filled()
	for n := 1; n < filled.Cluster.Managers; n++ {
		w.add(node, 0, false, func(f *scenario.File) { f.Cluster.Managers = n })
	}
	for n := 1; n < filled.Cluster.Data; n++ {
		w.add(node, 0, false, func(f *scenario.File) { f.Cluster.Data = n })
	}
	named := nodeName.FindAllString(string(scenario.Print(f)), -1)
	slices.Sort(named)
	for _, old := range slices.Compact(named) {
		for _, other := range []string{"m1", "d1"} {
			if standing(other) < standing(old) {
				w.add(node, 0, false, func(f *scenario.File) { rename(f, old, other) })
			}
		}
	}
}

// profile adds the move from a profile to its switches, one by one, or from the
// default one to none that is said.
func (w *walker) profile(f *scenario.File) {
	plain, err := wlm.Profile(wlm.Profiles()[0])
	of, err2 := wlm.Profile(f.Filled().Profile)
	if err != nil || err2 != nil || f.Profile == "" {
		return
	}
	w.add(node, 0, false, func(f *scenario.File) {
		f.Profile = ""
		for _, name := range of.Names() {
			if _, given := f.Switches[name]; !given && of.Get(name) != plain.Get(name) {
				if f.Switches == nil {
					f.Switches = map[string]string{}
				}
				f.Switches[name] = of.Get(name)
			}
		}
	})
}

// gaps adds the moves that shorten the time before a step: all that start then
// or later start earlier by as much.
func (w *walker) gaps(f *scenario.File) {
	instants := []scenario.Duration{0}
	for _, s := range f.Steps {
		instants = append(instants, s.At)
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)
	for i, at := range instants[1:] {
		gap := int64(at - instants[i])
		for i, n := range append([]int64{0}, lesser(gap, leastTime)...) {
			w.add(number, 0, i == 0, func(f *scenario.File) {
				for k := range f.Steps {
					if s := &f.Steps[k]; s.At >= at {
						s.At -= scenario.Duration(gap - n)
					}
				}
			})
		}
	}
}

// kept are the fields that stay as they are. Without explore.node it is another
// exploration, of the whole cluster, and what comes at shorter intervals comes
// more often.
var kept = []string{"File.Version", "File.Name", "File.Seed", "File.Profile", "Explore.Node", "Burst.Every", "Repeat.Every"}

// value adds the moves of a value and of what is within it.
func (w *walker) value(v reflect.Value, p place) {
	switch v.Kind() {
	case reflect.Pointer:
		w.value(v.Elem(), append(p, pointed{}))
	case reflect.Slice:
		w.list(v, p)
	case reflect.Map:
		w.mapping(v, p)
	case reflect.Struct:
		w.structure(v, p)
	case reflect.Int, reflect.Int64:
		w.number(v, p)
	}
}

func (w *walker) structure(v reflect.Value, p place) {
	switch r := v.Interface().(type) {
	case scenario.Range:
		w.span(r, p)
		return
	case scenario.Rate:
		for i, n := range lesser(int64(r.Count), 1) {
			w.at(number, 0, i == 0, p, func(v reflect.Value) { v.Field(0).SetFloat(float64(n)) })
		}
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || v.Field(i).IsZero() || slices.Contains(kept, v.Type().Name()+"."+field.Name) {
			continue
		}
		inner, outer := append(p, i), w.field
		w.field = v.Type().Name() + "." + field.Name
		if field.Tag.Get("yaml") != "" && !strings.Contains(field.Tag.Get("jsonschema"), "required") {
			w.at(kindOf(field.Type.Kind() != reflect.Slice && field.Type.Kind() != reflect.Map, option), math.MaxInt, true, inner, reflect.Value.SetZero)
		}
		w.value(v.Field(i), inner)
		w.field = outer
	}
}

// list adds the moves that take items out: halves, quarters and so on, and
// single ones.
func (w *walker) list(v reflect.Value, p place) {
	n := v.Len()
	for size := (n + 1) / 2; size >= 1; size /= 2 {
		for from := 0; from < n; from += size {
			to := min(from+size, n)
			w.at(kindOf(size == 1, item), size, size == 1, p, func(v reflect.Value) {
				v.Set(reflect.AppendSlice(v.Slice(0, from), v.Slice(to, n)))
			})
		}
	}
	for i := range n {
		w.value(v.Index(i), append(p, i))
	}
}

// kindOf is the kind of a move that takes one thing out, or else a chunk's.
func kindOf(one bool, kind int) int {
	if one {
		return kind
	}
	return chunk
}

func (w *walker) mapping(v reflect.Value, p place) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		w.at(item, 1, true, p, func(v reflect.Value) { v.SetMapIndex(key, reflect.Value{}) })
		w.value(v.MapIndex(key), append(p, key))
	}
}

// number adds the moves to a lesser number.
func (w *walker) number(v reflect.Value, p place) {
	least := int64(1)
	if v.Type() == reflect.TypeFor[scenario.Duration]() {
		least = leastTime
		w.at(number, 0, true, p, func(v reflect.Value) { v.SetInt(0) })
	}
	for i, n := range lesser(v.Int(), least) {
		w.at(number, 0, i == 0 && least == 1, p, func(v reflect.Value) { v.SetInt(n) })
	}
}

// span adds the moves to shorter times.
func (w *walker) span(r scenario.Range, p place) {
	for i, n := range lesser(int64(r.Max), leastTime) {
		most := scenario.Duration(n)
		w.at(number, 0, i == 0, p, func(v reflect.Value) { v.Set(reflect.ValueOf(scenario.Range{Min: min(r.Min, most), Max: most})) })
	}
}

// lesser returns round numbers below n, none below least: far below, and the
// next one.
func lesser(n, least int64) []int64 {
	var all []int64
	for _, m := range []int64{below(n/1000 + 1), below(n/100 + 1), below(n/10 + 1), below(n)} {
		if m >= least && m < n && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// eachText changes every text within v.
func eachText(v reflect.Value, change func(string) string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(change(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), change)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), change)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachText(v.Field(i), change)
			}
		}
	case reflect.Map:
		changed := reflect.MakeMap(v.Type())
		for key, value := range v.Seq2() {
			k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			k.Set(key)
			x.Set(value)
			eachText(k, change)
			eachText(x, change)
			changed.SetMapIndex(k, x)
		}
		if v.Len() > 0 {
			v.Set(changed)
		}
	}
}

// place is the way from a file to a value within it: numbers of fields and of
// items, keys, and pointed.
type place []any

// pointed is the way from a pointer to what it points to.
type pointed struct{}

// edit changes the value at a place within v.
func (p place) edit(v reflect.Value, change func(reflect.Value)) {
	if len(p) == 0 {
		change(v)
		return
	}
	switch hop := p[0].(type) {
	case pointed:
		p[1:].edit(v.Elem(), change)
	case reflect.Value:
		item := reflect.New(v.Type().Elem()).Elem()
		item.Set(v.MapIndex(hop))
		p[1:].edit(item, change)
		v.SetMapIndex(hop, item)
	case int:
		if v.Kind() == reflect.Struct {
			p[1:].edit(v.Field(hop), change)
		} else {
			p[1:].edit(v.Index(hop), change)
		}
	}
}
