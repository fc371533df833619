package rest

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wlmsim/wlmsim/cluster"
)

// MaxBody is the greatest length of a request's body, in bytes.
const MaxBody = 10_000_000

// fields reads the members of one JSON object, strictly: names are
// case-sensitive and stand once, text is UTF-8, and what the caller does not
// take is refused by it. Every error names the field.
type fields struct {
	d    *jsontext.Decoder
	path string // dotted name of the member that is being read
}

// readBody reads a body that must be one object and nothing else. member is
// called for each member in order and takes exactly one value from f.
func readBody(data []byte, member func(f *fields, name string) error) error {
	return readBodyWith(new(jsontext.Decoder), data, member)
}

// readBodyWith is readBody with a decoder that was used before and keeps its
// memory.
func readBodyWith(d *jsontext.Decoder, data []byte, member func(f *fields, name string) error) error {
	if len(data) == 0 {
		return cluster.Errorf(cluster.Parsing, "request body is required")
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return cluster.Errorf(cluster.Parsing, "request body begins with a byte-order mark: send plain UTF-8")
	}
	d.Reset(bytes.NewBuffer(data))
	f := &fields{d: d}
	if kind := f.d.PeekKind(); kind != '{' && kind != 0 {
		return cluster.Errorf(cluster.Parsing, "request body must be a JSON object but begins with a %s", kindName(kind))
	}
	if err := f.object("", member); err != nil {
		return err
	}
	if _, err := f.d.ReadToken(); !errors.Is(err, io.EOF) {
		return cluster.Errorf(cluster.Parsing, "request body has text after the end of its object, at byte %d", f.d.InputOffset())
	}
	return nil
}

// object reads an object; member gets its members' full dotted names in
// f.path and their own names.
func (f *fields) object(path string, member func(f *fields, name string) error) error {
	f.path = path
	token, err := f.d.ReadToken()
	if err != nil {
		return f.broken(err)
	}
	if token.Kind() != '{' {
		return f.wrong("an object", token.Kind().String())
	}
	for {
		token, err := f.d.ReadToken()
		if err != nil {
			return f.broken(err)
		}
		if token.Kind() == '}' {
			f.path = path
			return nil
		}
		name := token.String()
		f.path = dotted(path, name)
		if err := member(f, name); err != nil {
			return err
		}
	}
}

func dotted(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// kind says what the next value is: one of jsontext's kinds, 0 for broken text.
func (f *fields) kind() jsontext.Kind { return f.d.PeekKind() }

// scalar says whether the next value is neither an object nor an array.
func (f *fields) scalar() bool { k := f.kind(); return k != '{' && k != '[' }

// raw reads the next value whatever it is; the text is the caller's.
func (f *fields) raw() (jsontext.Value, error) {
	v, err := f.d.ReadValue()
	if err != nil {
		return nil, f.broken(err)
	}
	return v.Clone(), nil
}

// skip reads the next value and drops it.
func (f *fields) skip() error {
	if err := f.d.SkipValue(); err != nil {
		return f.broken(err)
	}
	return nil
}

// null takes the next value if it is null.
func (f *fields) null() bool {
	if f.kind() != 'n' {
		return false
	}
	_, err := f.d.ReadToken()
	return err == nil
}

// text reads a string.
func (f *fields) text() (string, error) {
	if f.kind() == '"' {
		token, err := f.d.ReadToken()
		if err != nil {
			return "", f.broken(err)
		}
		return token.String(), nil
	}
	return "", f.refuse("a string")
}

// literal reads any value as text, a string without its quotes.
func (f *fields) literal() (string, error) {
	if f.kind() == '"' {
		return f.text()
	}
	v, err := f.raw()
	return string(v), err
}

// word reads a string, a number or a boolean as text, as OpenSearch's settings
// take them.
func (f *fields) word() (string, error) {
	switch f.kind() {
	case '"', '0', 't', 'f':
		token, err := f.d.ReadToken()
		if err != nil {
			return "", f.broken(err)
		}
		return token.String(), nil
	}
	return "", f.refuse("a string, a number or a boolean")
}

// number reads a number.
func (f *fields) number() (float64, error) {
	v, err := f.raw()
	if err != nil {
		return 0, err
	}
	if v.Kind() != '0' {
		return 0, f.wrong("a number", string(v))
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0, f.wrong("a number that fits a double", string(v))
	}
	return n, nil
}

// coerced reads a number, or one in quotes, as OpenSearch's parser takes it where
// a number is wanted.
func (f *fields) coerced() (float64, error) {
	if f.kind() != '"' {
		return f.number()
	}
	text, err := f.text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || strings.Contains(text, "_") { // as Go writes numbers, but no JSON and no Java
		return 0, f.wrong("a number", strconv.Quote(text))
	}
	return n, nil
}

// integer reads a plain integer: digits with at most a minus before them, no
// point, no exponent, no minus zero, and within an int64.
func (f *fields) integer() (int64, error) {
	v, err := f.raw()
	if err != nil {
		return 0, err
	}
	n, ok := plainInteger(string(v))
	if !ok {
		return 0, f.wrong("an integer", string(v))
	}
	return n, nil
}

func plainInteger(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// texts reads an array of strings; the result is never nil.
func (f *fields) texts() ([]string, error) {
	if f.kind() != '[' {
		return nil, f.refuse("an array of strings")
	}
	if _, err := f.d.ReadToken(); err != nil {
		return nil, f.broken(err)
	}
	list := []string{}
	for f.kind() != ']' {
		s, err := f.text()
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if _, err := f.d.ReadToken(); err != nil {
		return nil, f.broken(err)
	}
	return list, nil
}

// flat reads an object of settings, nested or with dotted names, and hands
// each leaf to leaf under its whole name, without f.path. A name that comes
// twice, in two spellings, is refused.
func (f *fields) flat(leaf func(f *fields, key string) error) error {
	outer, seen := f.path, map[string]bool{}
	var member func(prefix string) func(*fields, string) error
	member = func(prefix string) func(*fields, string) error {
		return func(f *fields, name string) error {
			key := dotted(prefix, name)
			if f.kind() == '{' && !f.leafObject(key) {
				return f.object(f.path, member(key))
			}
			if seen[key] {
				return cluster.Errorf(cluster.Parsing, "duplicate setting [%s] in [%s]", key, outer)
			}
			seen[key] = true
			return leaf(f, key)
		}
	}
	return f.object(outer, member(""))
}

// leafObject says which setting has an object for its value.
func (f *fields) leafObject(key string) bool {
	return strings.TrimPrefix(key, "index.") == settingServiceTime
}

// refuse reads the next value and says that it is not what was wanted.
func (f *fields) refuse(want string) error {
	v, err := f.raw()
	if err != nil {
		return err
	}
	return f.wrong(want, string(v))
}

func (f *fields) wrong(want, got string) error {
	return cluster.Errorf(cluster.IllegalArgument, "%s must be %s but was '%s'", f.path, want, shorten(got))
}

// broken turns what the decoder found wrong with the text into an error that
// names the field.
func (f *fields) broken(err error) error {
	field := f.path
	why := err.Error()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		why = syntax.Err.Error() + " at byte " + strconv.FormatInt(syntax.ByteOffset, 10)
		if at := dotPointer(syntax.JSONPointer); !strings.HasPrefix(f.path, at) {
			field = at // else the text broke right after the member that was read last
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		why = "it ends too early"
	}
	return cluster.Errorf(cluster.Parsing, "request body is not valid JSON in [%s]: %s", shorten(field), why)
}

// dotPointer writes a JSON pointer as a dotted name.
func dotPointer(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
		if b.Len() > maxShown {
			break
		}
	}
	return b.String()
}

// maxShown bounds what a message repeats of a request, in bytes.
const maxShown = 128

// shorten cuts s for a message.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// tooLong says in which field a body passed [MaxBody]; data is its beginning.
func tooLong(data []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(data))
	field := ""
	if err := d.SkipValue(); err != nil {
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			field = shorten(dotPointer(syntax.JSONPointer))
		}
	}
	return cluster.Errorf(cluster.IllegalArgument, "request body is longer than %d bytes, in field [%s]", MaxBody, field)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	case 'n':
		return "null"
	}
	return "boolean"
}
