package scenario

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"
)

// field is one key of a struct of the format, as its tags describe it: the
// yaml tag gives the key and the layout, the jsonschema tag the bounds.
type field struct {
	name   string // "" for a form
	index  []int
	form   string // "scalar", "list" or "map": another way to write the whole struct
	layout string // "block": each entry on its own line; "deep": and each entry a block
	rules  rules
}

// rules are the bounds of a field, or of the items of a list.
type rules struct {
	required bool
	min, max *float64
	enum     []string
}

// fieldsOf lists the fields of a struct type, those of embedded structs
// included, in the order of the source.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous:
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		case f.IsExported():
			fields = append(fields, fieldOf(f, i))
		}
	}
	return fields
}

func fieldOf(f reflect.StructField, i int) field {
	name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	made := field{name: name, index: []int{i}, rules: rulesOf(f.Tag.Get("jsonschema"))}
	if name == "" {
		made.form = option
	} else {
		made.layout = option
	}
	return made
}

func rulesOf(tag string) rules {
	var r rules
	for part := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "required":
			r.required = true
		case "minimum":
			r.min = number(value)
		case "maximum":
			r.max = number(value)
		case "enum":
			r.enum = append(r.enum, value)
		}
	}
	return r
}

func number(text string) *float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("scenario: a tag gives the bound " + strconv.Quote(text))
	}
	return &v
}

// form returns the field that is the given form of a struct.
func formOf(t reflect.Type, form string) (field, bool) {
	for _, f := range fieldsOf(t) {
		if f.form == form {
			return f, true
		}
	}
	return field{}, false
}

// named lists the fields that have a key, and their keys.
func named(t reflect.Type) (fields []field, keys []string) {
	for _, f := range fieldsOf(t) {
		if f.name != "" {
			fields, keys = append(fields, f), append(keys, f.name)
		}
	}
	return fields, keys
}

// isOrdered says whether t is an [Ordered].
func isOrdered(t reflect.Type) bool { return t.Implements(reflect.TypeFor[interface{ ordered() }]()) }

// asText returns v as something that reads its own text, or nil.
func asText(v reflect.Value) encoding.TextUnmarshaler {
	if !v.CanAddr() {
		return nil
	}
	text, _ := v.Addr().Interface().(encoding.TextUnmarshaler)
	return text
}
