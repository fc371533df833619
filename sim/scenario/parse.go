package scenario

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// origin is where a file was parsed from.
type origin struct {
	name   string
	dir    string // of the file and its traces, "" if it was not read from disk
	text   []byte
	set    []string
	places map[string]Fault
	traces map[string][]Traced // by name of the load
}

// Parse reads a whole scenario, makes the assignments (see [File.Set]) and
// checks everything. name stands for the file in faults. The error, if any, is
// [Faults]. Traces are not read; see [Read].
func Parse(name string, text []byte, set ...string) (*File, error) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF")) // which some editors write
	d := newDecoder(sourceOf(name, text))
	f := d.file(text)
	if f == nil {
		return nil, d.faults.orNil()
	}
	for _, assignment := range set {
		d.assign(assignment, f)
	}
	check(f, d)
	if err := d.faults.orNil(); err != nil {
		return nil, err
	}
	f.origin = &origin{name: name, text: text, set: set, places: d.places}
	return f, nil
}

// file decodes a file; nil means that there was nothing to decode.
func (d *decoder) file(text []byte) *File {
	node := d.parse(text)
	if node == nil {
		return nil
	}
	f := &File{}
	d.value(node, reflect.ValueOf(f).Elem(), "", rules{})
	return f
}

// Read parses the file of a path and the traces that it names.
func Read(path string, set ...string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	f, err := Parse(path, text, set...)
	if err != nil {
		return nil, err
	}
	return f, f.readTraces(filepath.Dir(path))
}

func (f *File) readTraces(dir string) error {
	f.origin.dir = dir
	var faults Faults
	for i, l := range f.Load {
		if l.Arrive.Trace == "" || dir == "" {
			continue
		}
		rows, err := readTrace(filepath.Join(dir, filepath.FromSlash(l.Arrive.Trace)))
		if bad, ok := err.(Faults); ok {
			faults = append(faults, bad...)
		} else if err != nil {
			fault := f.origin.place(fmt.Sprintf("load[%d].arrive.trace", i))
			fault.Message = err.Error()
			faults = append(faults, fault)
		}
		if f.origin.traces == nil {
			f.origin.traces = map[string][]Traced{}
		}
		f.origin.traces[l.Name] = rows
	}
	return faults.orNil()
}

// Trace returns what the trace of a load says; nil if it has none, or if the
// file was parsed and not read.
func (f *File) Trace(load string) []Traced {
	if f.origin == nil {
		return nil
	}
	return f.origin.traces[load]
}

// Line returns where something stands in the file, as "expect[0]" or
// "steps[3].search": the line of it, or of the nearest thing around it; 0 for
// a File that was not parsed.
func (f *File) Line(path string) int {
	if f.origin == nil {
		return 0
	}
	return f.origin.place(path).Line
}

// moved returns where things stood in a file of which one part took the place
// of another.
func (o *origin) moved(from, to string) *origin {
	if o == nil {
		return nil
	}
	c := *o
	c.places = maps.Clone(o.places)
	for path, place := range o.places {
		if rest, ok := strings.CutPrefix(path, from); ok && (rest == "" || rest[0] == '[') {
			c.places[to+rest] = place
		}
	}
	return &c
}

func (o *origin) place(path string) Fault { return placeOf(o.places, path) }

// placeOf finds a path, or what is nearest around it. Keys may have dots in
// them, which costs a few look-ups more.
func placeOf(places map[string]Fault, path string) Fault {
	for {
		if p, ok := places[path]; ok {
			return p
		}
		if path == "" {
			return Fault{Line: 1, Col: 1}
		}
		path = around(path)
	}
}

// around cuts the last part off a path.
func around(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// copied returns a copy that shares nothing with f but where it came from.
func (f *File) copied() *File {
	c := *f
	detach(reflect.ValueOf(&c).Elem())
	return &c
}

// detach replaces everything that v refers to by copies.
func detach(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c := reflect.New(v.Type().Elem())
			c.Elem().Set(v.Elem())
			detach(c.Elem())
			v.Set(c)
		}
	case reflect.Slice:
		if !v.IsNil() {
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(c, v)
			for i := range c.Len() {
				detach(c.Index(i))
			}
			v.Set(c)
		}
	case reflect.Map:
		if !v.IsNil() {
			v.Set(detachedMap(v))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				detach(v.Field(i))
			}
		}
	}
}

func detachedMap(v reflect.Value) reflect.Value {
	c := reflect.MakeMapWithSize(v.Type(), v.Len())
	for key, value := range v.Seq2() {
		item := reflect.New(v.Type().Elem()).Elem()
		item.Set(value)
		detach(item)
		c.SetMapIndex(key, item)
	}
	return c
}

// Equal says whether two files ask for the same.
func Equal(a, b *File) bool {
	x, y := *a, *b
	x.origin, y.origin = nil, nil
	return reflect.DeepEqual(x, y)
}
