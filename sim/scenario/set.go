package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// labelled is an item of a list that has a name of its own.
type labelled interface{ label() string }

func (g Group) label() string  { return g.Name }
func (r Rule) label() string   { return r.Name }
func (l Load) label() string   { return l.Name }
func (s Step) label() string   { return s.ID() }
func (a Action) label() string { return a.ID() }

// Set returns f with assignments of the form PATH=VALUE made and everything
// checked anew. A path names keys of the file, joined by dots; an item of a
// list goes by its name, a step by the id of its request, either of them by
// its number, from 1. VALUE is YAML, on one line. Faults of an assignment
// point into it. With no assignment, Set checks a File that was made or
// changed in Go.
func (f *File) Set(assignments ...string) (*File, error) {
	o := f.source()
	next, err := Parse(o.name, o.text, append(slices.Clone(o.set), assignments...)...)
	if err != nil {
		return nil, err
	}
	next.origin.traces = o.traces
	return next, next.readTraces(o.dir)
}

// source returns a text that parses to f: the one that it came from, or what
// is printed if it was changed since.
func (f *File) source() *origin {
	if o := f.origin; o != nil {
		if was, err := Parse(o.name, o.text, o.set...); err == nil && Equal(was, f) {
			return o
		}
		return &origin{name: o.name, dir: o.dir, text: Print(f), traces: o.traces}
	}
	return &origin{name: f.Name, text: Print(f)}
}

// assign makes one assignment. A fault in it is shown in the assignment.
func (d *decoder) assign(assignment string, f *File) {
	file := d.source
	defer func() { d.source = file }()
	path, value, ok := strings.Cut(assignment, "=")
	d.source = sourceOf("--set", []byte(assignment))
	a := assigner{decoder: d}
	if !ok || path == "" || strings.ContainsAny(assignment, "\r\n") {
		a.refuse("%q is no assignment: write PATH=VALUE on one line", assignment)
		return
	}
	d.source.shift = utf8.RuneCountInString(path) + 1
	if a.node = d.parse([]byte(value)); a.node != nil {
		a.into(reflect.ValueOf(f).Elem(), path, "", rules{})
	}
}

// assigner walks down a path to the value that is set.
type assigner struct {
	*decoder
	node ast.Node
}

func (a *assigner) refuse(format string, args ...any) {
	shift := a.source.shift
	a.source.shift = 0
	f := a.source.at(1, 1)
	a.source.shift = shift
	f.Message = fmt.Sprintf(format, args...)
	a.faults = append(a.faults, f)
}

// into sets what rest names within v, whose own path is path.
func (a *assigner) into(v reflect.Value, rest, path string, r rules) {
	if rest == "" {
		v.SetZero()
		a.value(a.node, v, path, r)
		a.taint(path)
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	switch {
	case asText(v) == nil && v.Kind() == reflect.Struct:
		a.key(v, rest, path)
	case v.Kind() == reflect.Map:
		a.entry(v, rest, path, r)
	case v.Kind() == reflect.Slice && (isOrdered(v.Type()) || v.Type().Elem().Kind() == reflect.Struct):
		a.item(v, rest, path)
	case v.Kind() == reflect.Slice:
		a.refuse("%s is a list without names: set it as a whole, like %s=[a, b]", last(path), path)
	default:
		a.refuse("%s is a single value and has no %q", last(path), rest)
	}
}

// taint marks what is around a path as broken, if the path is.
func (a *assigner) taint(path string) {
	for outer := path; a.broken[path] && outer != ""; outer = around(outer) {
		a.broken[outer] = true
	}
}

// match finds the longest name that rest begins with, and what follows it.
func match(rest string, names []string) (i int, after string) {
	i = -1
	for j, name := range names {
		tail, ok := strings.CutPrefix(rest, name)
		if ok && name != "" && (tail == "" || tail[0] == '.') && (i < 0 || len(name) > len(names[i])) {
			i, after = j, strings.TrimPrefix(tail, ".")
		}
	}
	return i, after
}

func head(rest string) string {
	first, _, _ := strings.Cut(rest, ".")
	return first
}

func (a *assigner) key(v reflect.Value, rest, path string) {
	fields, keys := named(v.Type())
	i, after := match(rest, keys)
	if i < 0 {
		a.refuse("%s", unknown("key", head(rest), keys))
		return
	}
	a.into(v.FieldByIndex(fields[i].index), after, join(path, keys[i]), fields[i].rules)
}

// entry sets an entry of a mapping, or something within it. Entries that are
// single values may be new; their keys may have dots in them.
func (a *assigner) entry(v reflect.Value, rest, path string, r rules) {
	elem := v.Type().Elem()
	i, key, after := 0, rest, ""
	if elem.Kind() == reflect.Struct && !reflect.PointerTo(elem).Implements(reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()) {
		keys := sortedKeys(v)
		if i, after = match(rest, keys); i < 0 {
			a.refuse("%s", unknown("name in "+last(path), head(rest), keys))
			return
		}
		key = keys[i]
	}
	item := reflect.New(elem).Elem()
	name := reflect.ValueOf(key).Convert(v.Type().Key())
	if old := v.MapIndex(name); old.IsValid() {
		item.Set(old)
	}
	a.into(item, after, path+"."+key, r)
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	v.SetMapIndex(name, item)
}

// item sets something within an item of a list, found by name or number.
func (a *assigner) item(v reflect.Value, rest, path string) {
	labels := make([]string, v.Len())
	for i := range labels {
		if isOrdered(v.Type()) {
			labels[i] = v.Index(i).Field(0).String()
		} else if l, ok := v.Index(i).Interface().(labelled); ok {
			labels[i] = l.label()
		}
	}
	i, after := match(rest, labels)
	if n, err := strconv.Atoi(head(rest)); i < 0 && err == nil && n >= 1 && n <= len(labels) {
		i, after = n-1, strings.TrimPrefix(strings.TrimPrefix(rest, head(rest)), ".")
	}
	switch {
	case i < 0:
		a.refuse("%s, or a number from 1 to %d", unknown("name in "+last(path), head(rest), slices.DeleteFunc(labels, func(l string) bool { return l == "" })), v.Len())
	case isOrdered(v.Type()):
		a.into(v.Index(i).Field(1), after, path+"."+labels[i], rules{})
	default:
		a.into(v.Index(i), after, fmt.Sprintf("%s[%d]", path, i), rules{})
	}
}
