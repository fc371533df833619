package scenario_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
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
	require.True(t, bytes.Equal(made, scenario.Schema()), "run go test ./sim/scenario -run Schema -update")
}

func reflectSchema(t *testing.T) []byte {
	r := &jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		ExpandedStruct:             true,
		Mapper:                     mapped,
		Namer:                      definition,
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

// definition names a type in the schema; two packages have a Step.
func definition(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	if t == reflect.TypeFor[probe.Step]() {
		return "Node" + name
	}
	return name
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

// Promise 7: what parses is right by the schema too, and what has faults of
// shape is wrong by it.
func TestTheSchemaAgreesWithTheParser(t *testing.T) {
	v := validator{}
	require.NoError(t, json.Unmarshal(scenario.Schema(), &v.root))
	texts := []string{read(t, "testdata/design.yaml"), read(t, "testdata/design.golden"), read(t, "testdata/explore.golden"), read(t, "testdata/filled.golden"), scenario.Starter()}
	for _, item := range scenario.Catalog() {
		if item.Kind != scenario.Promised {
			texts = append(texts, base+"steps:\n"+item.Example)
		} else {
			texts = append(texts, base+item.Example)
		}
	}
	for _, text := range texts {
		require.Empty(t, v.validate(t, text), text)
	}
	for _, bad := range []string{"stepz: []", "seed: x", "steps: [{expect: []}]", "steps: [{at: -1s}]", "steps: [{at: 1s, hold: {node: m1, step: x}}]", "breaks: [x]", "load: [{name: a, arrive: {closed: 0}}]", "load: [{name: a, arrive: {poisson: 1}}]", "steps: [{at: 1s, crash: {node: m1, disk: gone}}]", "steps: [{at: 1s, partition: {sides: [x]}}]"} {
		require.NotEmpty(t, v.validate(t, base+bad+"\n"), bad)
	}
}

// validator knows as much of JSON schema as ours uses.
type validator struct{ root map[string]any }

func (v validator) validate(t *testing.T, text string) string {
	var value any
	converted, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(converted, &value))
	return v.wrong(v.root, value, "")
}

// wrong returns the path and the keyword of what is wrong, or "".
func (v validator) wrong(s map[string]any, value any, path string) string {
	if ref, ok := s["$ref"].(string); ok {
		return v.wrong(v.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), value, path)
	}
	if forms, ok := s["oneOf"].([]any); ok {
		fits := slices.DeleteFunc(slices.Clone(forms), func(f any) bool { return v.wrong(f.(map[string]any), value, path) != "" })
		if len(fits) != 1 {
			return path + " oneOf"
		}
		return ""
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, value) {
		return path + " enum"
	}
	switch value := value.(type) {
	case map[string]any:
		return v.wrongObject(s, value, path)
	case []any:
		for _, item := range value {
			if items, ok := s["items"].(map[string]any); !ok || v.wrong(items, item, path) != "" {
				return path + " items"
			}
		}
		return wrongType(s, path, "array")
	case string:
		if pattern, ok := s["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(value) {
			return path + " pattern"
		}
		return wrongType(s, path, "string")
	case float64:
		if low, ok := s["minimum"].(float64); ok && value < low {
			return path + " minimum"
		}
		return wrongType(s, path, "number", "integer")
	}
	return wrongType(s, path, "boolean")
}

func wrongType(s map[string]any, path string, fits ...string) string {
	if kind, ok := s["type"].(string); ok && !slices.Contains(fits, kind) {
		return path + " type"
	}
	return ""
}

func (v validator) wrongObject(s map[string]any, value map[string]any, path string) string {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := value[name.(string)]; !ok {
			return path + " lacks " + name.(string)
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, part := range value {
		inner, ok := properties[name].(map[string]any)
		if !ok {
			inner, ok = s["additionalProperties"].(map[string]any)
		}
		if !ok {
			return path + " has " + name
		}
		if why := v.wrong(inner, part, path+"."+name); why != "" {
			return why
		}
	}
	return wrongType(s, path, "object")
}
