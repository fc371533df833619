package scenario

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Print writes f in the canonical form. Parse reads it back to an equal file,
// but for comments. It panics for a [Rate] in a unit that rates do not have.
func Print(f *File) []byte {
	var p printer
	p.block(reflect.ValueOf(f).Elem(), "")
	return p.Bytes()
}

type printer struct{ bytes.Buffer }

// shown says whether a field is written: it is set, or it must be there.
func (f field) shown(v reflect.Value) bool {
	return f.name != "" && (f.rules.required || !v.FieldByIndex(f.index).IsZero())
}

// block writes a struct, a key a line.
func (p *printer) block(v reflect.Value, indent string) {
	before := indent
	for _, f := range fieldsOf(v.Type()) {
		if f.shown(v) {
			p.WriteString(before + f.name + ":")
			p.under(v.FieldByIndex(f.index), f.layout, indent)
			before = indent
		}
	}
}

// under writes the value of a key and the end of the line.
func (p *printer) under(v reflect.Value, layout, indent string) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case layout == "" || v.Kind() != reflect.Struct && v.Len() == 0:
		p.WriteString(" " + inline(v) + "\n")
	case v.Kind() == reflect.Struct:
		p.WriteByte('\n')
		p.block(v, indent+"  ")
	default:
		p.WriteByte('\n')
		p.items(v, layout == "deep", indent+"  ")
	}
}

// items writes the entries of a list or mapping.
func (p *printer) items(v reflect.Value, deep bool, indent string) {
	for key, item := range entriesOf(v) {
		switch {
		case key != "" && deep && item.Kind() == reflect.Slice:
			p.WriteString(indent + key)
			p.under(item, "block", indent)
		case key != "" && deep:
			p.WriteString(indent + key + "\n")
			p.block(item, indent+"  ")
		case deep:
			p.step(item, indent)
		case key == "":
			p.WriteString(indent + "- " + inline(item) + "\n")
		default:
			p.WriteString(indent + key + " " + inline(item) + "\n")
		}
	}
}

// step writes a struct as an item of a list.
func (p *printer) step(v reflect.Value, indent string) {
	var inner printer
	inner.block(v, indent+"  ")
	p.WriteString(indent + "- " + strings.TrimPrefix(inner.String(), indent+"  "))
}

// entriesOf yields the entries of a list, under the key "", or of a mapping,
// under its key as it is written, in a fixed order.
func entriesOf(v reflect.Value) func(func(string, reflect.Value) bool) {
	return func(yield func(string, reflect.Value) bool) {
		if v.Kind() == reflect.Map {
			for _, key := range sortedKeys(v) {
				if !yield(quoted(key, true)+":", v.MapIndex(reflect.ValueOf(key).Convert(v.Type().Key()))) {
					return
				}
			}
			return
		}
		for i := range v.Len() {
			key, item := "", v.Index(i)
			if isOrdered(v.Type()) {
				key, item = quoted(item.Field(0).String(), true)+":", item.Field(1)
			}
			if !yield(key, item) {
				return
			}
		}
	}
}

func sortedKeys(v reflect.Value) []string {
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// inline writes a value that has a line to itself: text may be plainer there
// than within brackets.
func inline(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return quoted(v.String(), false)
	}
	return flow(v)
}

// flow writes a value in brackets.
func flow(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			panic(fmt.Sprintf("scenario: %T %+v cannot be written: %v", v.Interface(), v.Interface(), err))
		}
		return string(text)
	}
	switch v.Kind() {
	case reflect.Struct:
		return flowStruct(v)
	case reflect.Map, reflect.Slice:
		return flowItems(v)
	case reflect.String:
		return quoted(v.String(), true)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

func flowItems(v reflect.Value) string {
	var parts []string
	open, end := "[", "]"
	if v.Kind() == reflect.Map || isOrdered(v.Type()) {
		open, end = "{", "}"
	}
	for key, item := range entriesOf(v) {
		part := flow(item)
		if key != "" {
			part = key + " " + part
		}
		parts = append(parts, part)
	}
	return open + strings.Join(parts, ", ") + end
}

func flowStruct(v reflect.Value) string {
	var parts []string
	short := ""
	for _, f := range fieldsOf(v.Type()) {
		switch item := v.FieldByIndex(f.index); {
		case f.shown(v):
			parts = append(parts, f.name+": "+flow(item))
		case f.form != "" && (short == "" || !item.IsZero()):
			short = flow(item)
		}
	}
	if len(parts) == 0 && short != "" {
		return short
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// plainFlow is text that YAML reads as itself within brackets, plainLine also
// what it does so at the end of a line.
var (
	plainFlow = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)
	plainLine = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./()"'=<>!&|,*+%? \[\]-]*$`)
	notText   = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n)$`)
)

func quoted(s string, within bool) string {
	plain := plainFlow.MatchString(s) || !within && plainLine.MatchString(s) && s == strings.TrimSpace(s)
	if plain && !notText.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
