package scenario_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

var update = flag.Bool("update", false, "rewrite schema.json and the golden files")

// Promise 7: the schema comes from the types and their comments. Rewrite it
// with go test ./sim/scenario -run Schema -update.
func TestTheSchemaIsCurrent(t *testing.T) {
	made := reflectSchema(t)
	if *update {
		require.NoError(t, os.WriteFile("schema.json", made, 0o644))
		return
	}
	require.Equal(t, string(made), string(scenario.Schema()), "run go test ./sim/scenario -run Schema -update")
}

func reflectSchema(t *testing.T) []byte {
	r := &jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		ExpandedStruct:             true,
		Mapper:                     mapped,
		Namer:                      func(t reflect.Type) string { return strings.Split(t.Name(), "[")[0] },
	}
	require.NoError(t, r.AddGoComments("github.com/wlmsim/wlmsim/sim/scenario", "./"))
	s := r.Reflect(&scenario.File{})
	s.ID = "https://github.com/wlmsim/wlmsim/sim/scenario/schema.json"
	s.Title = "A scenario of wlmsim"
	shortForms(s.Definitions)
	text, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	return append(text, '\n')
}

func mapped(t reflect.Type) *jsonschema.Schema {
	text := func(pattern, means string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: pattern, Description: means}
	}
	switch t {
	case reflect.TypeFor[scenario.Duration]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{text(`^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`, "a time, like 250ms or 1m30s"), {Type: "integer", Enum: []any{0}}}}
	case reflect.TypeFor[scenario.Offset]():
		return text(`^-?([0-9.]+(ns|us|µs|ms|s|m|h))+$`, "a time ahead or, with a minus, behind")
	case reflect.TypeFor[scenario.Range]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{text(`^[0-9a-zµ.]+(\.\.[0-9a-zµ.]+)?$`, "a time, or a range to draw from, like 1ms..5ms"), {Type: "integer", Enum: []any{0}}}}
	case reflect.TypeFor[scenario.Rate]():
		return text(`^[0-9.eE+-]+/[smh]$`, "a rate, like 200/s or 10/m")
	case reflect.TypeFor[scenario.Setting]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
	case reflect.TypeFor[scenario.Promise]():
		s := &jsonschema.Schema{Type: "string"}
		for _, m := range scenario.Promises() {
			s.Enum = append(s.Enum, m.Promise)
		}
		return s
	case reflect.TypeFor[probe.Step]():
		s := &jsonschema.Schema{Type: "string"}
		for _, step := range probe.Steps() {
			s.Enum = append(s.Enum, step)
		}
		return s
	}
	return nil
}

// shortForms adds the other ways to write some structs, which tags cannot say.
func shortForms(definitions jsonschema.Definitions) {
	one := func(name string, forms ...*jsonschema.Schema) {
		old := definitions[name]
		if old.Properties.Len() > 0 {
			forms = append(forms, old)
		}
		definitions[name] = &jsonschema.Schema{OneOf: forms, Description: old.Description}
		old.Description = ""
	}
	names := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
	one("ServiceTime", mapped(reflect.TypeFor[scenario.Duration]()))
	one("Side", &jsonschema.Schema{Type: "string", Enum: []any{"rest"}}, names)
	one("Via", &jsonschema.Schema{Type: "string", Enum: []any{"all", "random"}}, names,
		&jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "number"}})
}

// Every key that a file can have is in the schema, with a description.
func TestTheSchemaNamesEveryAction(t *testing.T) {
	text := scenario.Schema()
	for i := range reflect.TypeFor[scenario.Action]().NumField() {
		name := reflect.TypeFor[scenario.Action]().Field(i).Tag.Get("yaml")
		require.True(t, bytes.Contains(text, []byte(`"`+name+`": {`)), name)
	}
}
