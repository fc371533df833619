package shrink

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// leaps are the moves to few nodes at once: of an exploration of a whole cluster
// to one of a single node, to one manager and one data node, and to two managers.
func leaps(f *scenario.File) (all []func(*scenario.File)) {
	if explore.Whole(f) {
		all = append(all, alone)
	}
	if builds(f) {
		all = append(all, to(1), to(2))
	}
	return all
}

// to is the move to so many managers and one data node. Nodes that are no more
// have the name of the last one that is.
func to(managers int) func(*scenario.File) {
	last := map[byte]string{'m': fmt.Sprintf("m%d", managers), 'd': "d1"}
	return func(f *scenario.File) {
		f.Cluster.Managers, f.Cluster.Data = managers, 1
		renameAll(f, func(node string) string {
			if standing(node) > standing(last[node[0]]) {
				return last[node[0]]
			}
			return node
		})
	}
}

// alone turns the exploration of a whole cluster into that of its first
// manager: everything happens there, and what a single node cannot do is left
// out.
func alone(f *scenario.File) {
	e := f.Explore
	f.Cluster.Managers, f.Cluster.Data = 0, 0
	renameAll(f, func(string) string { return "m1" })
	e.Node = "m1"
	drop(f, func(a *scenario.Action) bool { return a.Request() == nil && a.Cancel == nil })
	each(f, func(a *scenario.Action) {
		if r := a.Request(); r != nil {
			r.Via = ""
		}
	})
}

// each calls do for every action of an exploration.
func each(f *scenario.File, do func(*scenario.Action)) {
	e := f.Explore
	for i := range e.Before {
		do(&e.Before[i])
	}
	for i := range e.Actors {
		for k := range e.Actors[i].Value {
			do(&e.Actors[i].Value[k])
		}
	}
}

// drop takes actions out of an exploration, and actors that have no other ones.
func drop(f *scenario.File, which func(*scenario.Action) bool) {
	each := func(a scenario.Action) bool { return which(&a) }
	e := f.Explore
	e.Before = slices.DeleteFunc(e.Before, each)
	for i := range e.Actors {
		e.Actors[i].Value = slices.DeleteFunc(e.Actors[i].Value, each)
	}
	e.Actors = slices.DeleteFunc(e.Actors, func(a scenario.Entry[[]scenario.Action]) bool { return len(a.Value) == 0 })
	e.Together = slices.DeleteFunc(e.Together, func(name string) bool {
		return !slices.ContainsFunc(e.Actors, func(a scenario.Entry[[]scenario.Action]) bool { return a.Name == name })
	})
}

// names adds the moves that take out all that is said of one thing, be it a
// group, a search, an index or the step of a window: what says it first is
// needed by what says it later.
func (w *walker) names(f *scenario.File) {
	count := map[string]int{}
	for _, item := range items(f) {
		for _, name := range textsOf(item) {
			count[name]++
		}
	}
	if f.Explore != nil { // an id that is observed is said twice
		each(f, func(a *scenario.Action) {
			if id := a.ID(); id != "" && slices.ContainsFunc(f.Explore.Observe, observes(id)) {
				count[id]++
			}
		})
	}
	var all []string
	for name, n := range count {
		if n > 1 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	for _, name := range all {
		w.add(chunk, count[name], false, func(f *scenario.File) { forget(f, name) })
	}
}

// items are what lists of a file have, and what they do not need to have.
func items(f *scenario.File) (all []reflect.Value) {
	add := func(list reflect.Value) {
		for i := range list.Len() {
			all = append(all, list.Index(i))
		}
	}
	add(reflect.ValueOf(f.Groups))
	add(reflect.ValueOf(f.Rules))
	add(reflect.ValueOf(f.Load))
	add(reflect.ValueOf(f.Steps))
	if f.Explore != nil {
		each(f, func(a *scenario.Action) { all = append(all, reflect.ValueOf(*a)) })
	}
	return all
}

// textsOf returns the different texts within a value.
func textsOf(v reflect.Value) (all []string) {
	readTexts(v, func(text string) {
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	})
	return all
}

// readTexts calls do for each text within v.
func readTexts(v reflect.Value, do func(string)) {
	switch v.Kind() {
	case reflect.String:
		do(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			readTexts(v.Elem(), do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			readTexts(v.Index(i), do)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				readTexts(v.Field(i), do)
			}
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			readTexts(key, do)
			readTexts(value, do)
		}
	}
}

// forget takes out what says a name.
func forget(f *scenario.File, name string) {
	says := func(v any) bool { return slices.Contains(textsOf(reflect.ValueOf(v)), name) }
	delete(f.Users, name)
	delete(f.Cluster.Indices, name)
	f.Groups = slices.DeleteFunc(f.Groups, func(g scenario.Group) bool { return says(g) })
	f.Rules = slices.DeleteFunc(f.Rules, func(r scenario.Rule) bool { return says(r) })
	f.Load = slices.DeleteFunc(f.Load, func(l scenario.Load) bool { return says(l) })
	f.Steps = slices.DeleteFunc(f.Steps, func(s scenario.Step) bool { return says(s) })
	if f.Explore == nil {
		return
	}
	drop(f, func(a *scenario.Action) bool { return says(*a) })
	e := f.Explore
	if e.Observe = slices.DeleteFunc(e.Observe, observes(name)); len(e.Observe) == 0 {
		e.Observe = scenario.Ordered[scenario.Expression]{{Name: "nothing", Value: "0"}}
	}
}

// observes tells the observations that name something.
func observes(name string) func(scenario.Entry[scenario.Expression]) bool {
	word := regexp.MustCompile(fmt.Sprintf(`\b%s\b`, regexp.QuoteMeta(name)))
	return func(o scenario.Entry[scenario.Expression]) bool { return word.MatchString(string(o.Value)) }
}

// rename puts another node in the place of one, wherever it is named.
func rename(f *scenario.File, old, other string) {
	renameAll(f, func(node string) string {
		if node == old {
			return other
		}
		return node
	})
}

// renameAll renames the nodes of a file, wherever they are named.
func renameAll(f *scenario.File, name func(string) string) {
	about := f.Name // is only read
	eachText(reflect.ValueOf(f).Elem(), func(text string) string { return nodeName.ReplaceAllStringFunc(text, name) })
	f.Name = about
}
