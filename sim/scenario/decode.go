package scenario

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on the text of a file, so that reading it cannot exhaust the stack.
const (
	MaxFileBytes = 1 << 20
	maxNesting   = 32 // brackets within brackets, or dashes on one line
)

// source is a text that faults point into.
type source struct {
	name  string
	lines []string
	shift int // characters of the first line before the text that was parsed
}

func sourceOf(name string, text []byte) source {
	return source{name: name, lines: strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")}
}

// at returns a place in the source; a position outside it is moved inside.
func (s source) at(line, col int) Fault {
	line = max(1, min(line, len(s.lines)))
	text := s.lines[line-1]
	if line == 1 {
		col += s.shift
	}
	return Fault{File: s.name, Line: line, Col: max(1, min(col, utf8.RuneCountInString(text)+1)), Text: text}
}

// decoder turns YAML into the types of the format. It goes on after a fault,
// so that it finds them all, and it remembers where everything stood.
type decoder struct {
	source source
	places map[string]Fault // without a message, by path
	broken map[string]bool  // paths that have a fault, at or within them
	faults Faults
}

func newDecoder(src source) *decoder {
	return &decoder{source: src, places: map[string]Fault{}, broken: map[string]bool{}}
}

func (d *decoder) fault(p *token.Position, format string, args ...any) {
	f := d.source.at(p.Line, p.Column)
	f.Message = fmt.Sprintf(format, args...)
	d.faults = append(d.faults, f)
}

func (d *decoder) faultAt(n ast.Node, format string, args ...any) {
	d.fault(start(n), format, args...)
}

// start is where a node begins; YAML's own token of a block mapping is its
// first colon.
func start(n ast.Node) *token.Position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position
	}
	return n.GetToken().Position
}

// parse returns the one value that a text holds, or nil after a fault.
func (d *decoder) parse(text []byte) (node ast.Node) {
	defer func() {
		if p := recover(); p != nil { // the YAML parser's own fault, not the file's
			d.fault(&token.Position{Line: 1, Column: 1}, "the YAML parser gave up: %v", p)
			node = nil
		}
	}()
	if why := unreadable(text); why != "" {
		d.fault(&token.Position{Line: 1, Column: 1}, "%s", why)
		return nil
	}
	tokens := lexer.Tokenize(string(text))
	if !d.admit(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil
	}
	return d.only(file)
}

func unreadable(text []byte) string {
	switch {
	case len(text) > MaxFileBytes:
		return fmt.Sprintf("the file has %d bytes: at most %d", len(text), MaxFileBytes)
	case !utf8.Valid(text):
		return "the file is not UTF-8 text"
	}
	return ""
}

// admit refuses what YAML has and the format has not, and what is nested too
// deep to parse.
func (d *decoder) admit(tokens token.Tokens) bool {
	before, depth, dashes, line := len(d.faults), 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType, token.DirectiveType:
			d.fault(t.Position, "%s is YAML that scenarios do not use", strings.TrimSpace(t.Origin))
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		}
		if depth > maxNesting || dashes > maxNesting {
			d.fault(t.Position, "nested deeper than %d", maxNesting)
			return false
		}
	}
	return len(d.faults) == before
}

func (d *decoder) syntax(err error) {
	var broken *yaml.SyntaxError
	if errors.As(err, &broken) && broken.Token != nil {
		d.fault(broken.Token.Position, "%s", broken.Message)
		return
	}
	d.fault(&token.Position{Line: 1, Column: 1}, "%s", yaml.FormatError(err, false, false))
}

func (d *decoder) only(file *ast.File) ast.Node {
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		d.fault(&token.Position{Line: 1, Column: 1}, "there is nothing in it")
		return nil
	case 1:
		return bodies[0]
	}
	d.faultAt(bodies[1], "a second document: a file holds one scenario")
	return nil
}

// value decodes n into v, which is settable and zero.
func (d *decoder) value(n ast.Node, v reflect.Value, path string, r rules) {
	d.places[path] = d.source.at(start(n).Line, start(n).Column)
	before := len(d.faults)
	d.decode(n, v, path, r)
	d.broken[path] = len(d.faults) > before
}

func (d *decoder) decode(n ast.Node, v reflect.Value, path string, r rules) {
	if n.Type() == ast.NullType {
		d.faultAt(n, "%s has no value: give it one or leave it out", last(path))
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if reader := asText(v); reader != nil {
		if !d.text(n, reader, path) {
			v.SetZero() // a value that is half read may be one that cannot be written
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path, r)
	case reflect.Slice:
		d.list(n, v, path, r)
	case reflect.String:
		d.word(n, v, path, r)
	case reflect.Bool:
		d.truth(n, v, path)
	default:
		d.number(n, v, path, r)
	}
}

// last is the end of a path, as faults name it.
func last(path string) string {
	if path == "" {
		return "the file"
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	if before, index, ok := strings.Cut(name, "["); ok {
		i, _ := strconv.Atoi(strings.TrimSuffix(index, "]")) // paths are ours
		return fmt.Sprintf("item %d of %s", i+1, before)
	}
	return name
}

// scalar returns the text of a scalar and whether it was written plainly.
func scalar(n ast.Node) (text string, plain, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, n.Token.Type != token.SingleQuoteType && n.Token.Type != token.DoubleQuoteType, true
	case *ast.LiteralNode:
		return n.Value.Value, false, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true, true
	}
	return "", false, false
}

func (d *decoder) text(n ast.Node, reader encoding.TextUnmarshaler, path string) bool {
	text, _, ok := scalar(n)
	if !ok {
		d.faultAt(n, "%s must be a single value but is %s", last(path), kind(n))
		return false
	}
	err := reader.UnmarshalText([]byte(text))
	if err != nil {
		d.faultAt(n, "%s: %v", last(path), err)
	}
	return err == nil
}

func (d *decoder) word(n ast.Node, v reflect.Value, path string, r rules) {
	text, _, ok := scalar(n)
	switch {
	case !ok:
		d.faultAt(n, "%s must be text but is %s", last(path), kind(n))
	case n.Type() != ast.StringType && n.Type() != ast.LiteralType:
		d.faultAt(n, "%s must be text but %s is %s: write %q", last(path), text, kind(n), text)
	case r.enum != nil && !slices.Contains(r.enum, text):
		d.faultAt(n, "%s", unknown(last(path), text, r.enum))
	default:
		v.SetString(text)
	}
}

func (d *decoder) truth(n ast.Node, v reflect.Value, path string) {
	if n.Type() != ast.BoolType {
		d.faultAt(n, "%s must be true or false but is %s", last(path), kind(n))
		return
	}
	v.SetBool(strings.EqualFold(n.GetToken().Value, "true"))
}

func (d *decoder) number(n ast.Node, v reflect.Value, path string, r rules) {
	text, plain, ok := scalar(n)
	switch {
	case ok && plain && plainNumber.MatchString(text):
	case kind(n) == "a number":
		d.faultAt(n, "%s must be a number in decimal digits but is %s", last(path), text)
		return
	default:
		d.faultAt(n, "%s must be a number but is %s", last(path), kind(n))
		return
	}
	if f, _ := strconv.ParseFloat(text, 64); (r.min != nil && f < *r.min) || (r.max != nil && f > *r.max) { // infinity is over any bound
		d.faultAt(n, "%s %s is out of bounds: %s", last(path), text, r.bounds())
		return
	}
	var err error
	switch {
	case v.CanFloat():
		var f float64
		f, err = strconv.ParseFloat(text, 64)
		v.SetFloat(f)
	case v.CanUint():
		var u uint64
		u, err = strconv.ParseUint(text, 10, 64)
		v.SetUint(u)
	default:
		var i int64
		i, err = strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(i)
	}
	if err != nil {
		v.SetZero()
		d.faultAt(n, "%s %s is not a number that it can be: %s", last(path), text, whole(v))
	}
}

func whole(v reflect.Value) string {
	switch {
	case v.CanFloat():
		return "finite"
	case v.CanUint():
		return "whole, 0 or more"
	}
	return "whole"
}

func (r rules) bounds() string {
	switch {
	case r.min != nil && r.max != nil:
		return fmt.Sprintf("%s to %s", short(*r.min), short(*r.max))
	case r.min != nil:
		return "at least " + short(*r.min)
	}
	return "at most " + short(*r.max)
}

func short(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func (d *decoder) list(n ast.Node, v reflect.Value, path string, r rules) {
	if isOrdered(v.Type()) {
		d.entries(n, v, path)
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.faultAt(n, "%s must be a list but is %s", last(path), kind(n))
		return
	}
	if len(seq.Values) == 0 {
		return // nothing and an empty list are the same
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		d.value(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i), r)
	}
}

// pair is one key of a mapping and its value.
type pair struct {
	key   string
	at    ast.Node
	value ast.Node
}

// pairs returns the keys of a mapping, each once; it faults duplicates.
func (d *decoder) pairs(n ast.Node, path string) ([]pair, bool) {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		d.faultAt(n, "%s must be a mapping but is %s", last(path), kind(n))
		return nil, false
	}
	var pairs []pair
	seen := map[string]bool{}
	for _, m := range mapping.Values {
		key, _, ok := scalar(m.Key)
		switch {
		case !ok:
			d.faultAt(m.Key, "a key must be text but is %s", kind(m.Key))
		case seen[key]:
			d.faultAt(m.Key, "duplicate key %q", key)
		default:
			seen[key] = true
			pairs = append(pairs, pair{key, m.Key, m.Value})
		}
	}
	return pairs, true
}

func (d *decoder) mapping(n ast.Node, v reflect.Value, path string, r rules) {
	pairs, ok := d.pairs(n, path)
	if !ok || len(pairs) == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range pairs {
		item := reflect.New(v.Type().Elem()).Elem()
		d.named(p, item, path, r)
		v.SetMapIndex(reflect.ValueOf(p.key).Convert(v.Type().Key()), item)
	}
}

func (d *decoder) entries(n ast.Node, v reflect.Value, path string) {
	pairs, _ := d.pairs(n, path)
	for _, p := range pairs {
		entry := reflect.New(v.Type().Elem()).Elem()
		entry.Field(0).SetString(p.key)
		d.named(p, entry.Field(1), path, rules{})
		v.Set(reflect.Append(v, entry))
	}
}

// named decodes the value of a key that the file chose. Faults about it as a
// whole are shown at the key.
func (d *decoder) named(p pair, v reflect.Value, path string, r rules) {
	inner := path + "." + p.key
	d.value(p.value, v, inner, r)
	if v.Kind() == reflect.Struct && asText(v) == nil {
		d.places[inner] = d.source.at(start(p.at).Line, start(p.at).Column)
	}
}

func (d *decoder) structure(n ast.Node, v reflect.Value, path string) {
	if f, ok := formOf(v.Type(), shape(n)); ok {
		d.value(n, v.FieldByIndex(f.index), path, f.rules)
		d.notEmpty(n, v, path)
		return
	}
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	if _, short := formOf(v.Type(), "scalar"); short && len(pairs) == 0 {
		d.faultAt(n, "%s is empty", last(path))
	}
	fields, keys := named(v.Type())
	given := map[string]bool{}
	for _, p := range pairs {
		i := slices.Index(keys, p.key)
		if i < 0 {
			d.faultAt(p.at, "%s", unknown("key", p.key, keys))
			continue
		}
		given[p.key] = true
		d.value(p.value, v.FieldByIndex(fields[i].index), join(path, p.key), fields[i].rules)
	}
	for _, f := range fields {
		if f.rules.required && !given[f.name] {
			d.faultAt(n, "%s lacks %q", last(path), f.name)
			d.broken[join(path, f.name)] = true
		}
	}
}

// notEmpty faults a list or mapping in place of a struct that says nothing.
func (d *decoder) notEmpty(n ast.Node, v reflect.Value, path string) {
	if shape(n) != "scalar" && v.IsZero() {
		d.faultAt(n, "%s is empty", last(path))
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shape is the form of a struct that a node could be.
func shape(n ast.Node) string {
	switch n.(type) {
	case *ast.SequenceNode:
		return "list"
	case *ast.MappingNode:
		return "map"
	}
	return "scalar"
}

func kind(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	case ast.NullType:
		return "nothing"
	}
	return "text"
}
