package shrink

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// leaps are the moves to the fewest nodes at once: of an exploration of a whole
// cluster to one of a single node, and to one manager and one data node.
func leaps(f *scenario.File) (all []func(*scenario.File)) {
	if explore.Whole(f) {
		all = append(all, alone)
	}
	if builds(f) {
		all = append(all, func(f *scenario.File) {
			f.Cluster.Managers, f.Cluster.Data = 1, 1
			renameAll(f, func(node string) string { return node[:1] + "1" })
		})
	}
	return all
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
	word := regexp.MustCompile(fmt.Sprintf(`\b%s\b`, regexp.QuoteMeta(name)))
	f.Explore.Observe = slices.DeleteFunc(f.Explore.Observe, func(o scenario.Entry[scenario.Expression]) bool {
		return word.MatchString(string(o.Value))
	})
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
