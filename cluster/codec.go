package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"unicode/utf8"
)

// Format is the version of the texts that this package writes: commands in the
// log and states in a snapshot. A node stops at one that it does not know.
const Format = 1

func newCommand(kind string) Command {
	for _, c := range []Command{
		new(CreateGroup), new(UpdateGroup), new(DeleteGroup), new(PutSettings), new(CreateRule), new(UpdateRule),
		new(DeleteRule), new(CreateIndex), new(DeleteIndex), new(PutNode), new(RemoveNode),
	} {
		if c.kind() == kind {
			return c
		}
	}
	return nil
}

func (*CreateGroup) kind() string { return "create_group" }
func (*UpdateGroup) kind() string { return "update_group" }
func (*DeleteGroup) kind() string { return "delete_group" }
func (*PutSettings) kind() string { return "put_settings" }
func (*CreateRule) kind() string  { return "create_rule" }
func (*UpdateRule) kind() string  { return "update_rule" }
func (*DeleteRule) kind() string  { return "delete_rule" }
func (*CreateIndex) kind() string { return "create_index" }
func (*DeleteIndex) kind() string { return "delete_index" }
func (*PutNode) kind() string     { return "put_node" }
func (*RemoveNode) kind() string  { return "remove_node" }

type envelope struct {
	Format int             `json:"format"`
	Kind   string          `json:"kind"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// KindName returns the name under which a command is written, for messages.
func KindName(c Command) string { return c.kind() }

// EncodeCommand writes a command as the log and the messages between nodes
// carry it.
func EncodeCommand(c Command) ([]byte, error) {
	text, err := encode(c.kind(), c)
	if err != nil {
		return nil, fmt.Errorf("encode command %s: %w", c.kind(), err)
	}
	return text, nil
}

// encode refuses what JSON would change silently, text that is not UTF-8, and
// what it cannot write, a number that is not finite.
func encode(kind string, body any) ([]byte, error) {
	if err := checkText(reflect.ValueOf(body)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{Format, kind, text})
}

func checkText(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return fmt.Errorf("text %q is not UTF-8", v.String())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return checkText(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkText(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkText(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if err := firstOf(checkText(entries.Key()), checkText(entries.Value())); err != nil {
				return err
			}
		}
	}
	return nil
}

// DecodeCommand reads what [EncodeCommand] wrote. A format, a kind or a field
// that this program does not know is an error: going on would let this node's
// state differ from the others'.
func DecodeCommand(data []byte) (Command, error) {
	var e envelope
	if err := decodeStrict(data, &e); err != nil {
		return nil, fmt.Errorf("decode command: %w", err)
	}
	if e.Format != Format {
		return nil, fmt.Errorf("decode command: format %d is unknown, this program knows %d", e.Format, Format)
	}
	c := newCommand(e.Kind)
	if c == nil {
		return nil, fmt.Errorf("decode command: kind %q is unknown to this program; it was written by a newer one", e.Kind)
	}
	if err := decodeStrict(e.Body, c); err != nil {
		return nil, fmt.Errorf("decode command %s: %w", e.Kind, err)
	}
	return c, nil
}

// decodeStrict reads one JSON value that is not null; [Apply] and the rest
// rely on a body having been there.
func decodeStrict(data []byte, v any) error {
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return errors.New("the value is null")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("text follows the end of the value")
	}
	return nil
}

// The kinds of record in an encoded state, in the order they are written.
const (
	recordHead     = "state"
	recordSettings = "settings"
	recordGroup    = "group"
	recordRule     = "rule"
	recordIndex    = "index"
	recordNode     = "node"
	recordEnd      = "end"
)

type head struct {
	Version uint64 `json:"version"`
}

type end struct {
	Records int `json:"records"`
}

// EncodeState writes a state as one JSON record a line: a head with the
// format and version, the settings, the entries, and an end that counts them.
func EncodeState(w io.Writer, s *State) error {
	out := bufio.NewWriter(w)
	records := 0
	write := func(kind string, body any) error {
		line, err := encode(kind, body)
		if err == nil && len(line) >= MaxRecord {
			err = fmt.Errorf("%d bytes are over the bound of %d", len(line), MaxRecord)
		}
		if err != nil {
			return fmt.Errorf("encode state, record %d, %s: %w", records+1, kind, err)
		}
		records++
		_, err = out.Write(append(line, '\n'))
		return err
	}
	if err := firstOf(write(recordHead, head{s.version}), write(recordSettings, s.settings),
		writeAll(write, recordGroup, s.groups), writeAll(write, recordRule, s.rules),
		writeAll(write, recordIndex, s.indices), writeAll(write, recordNode, s.nodes),
		write(recordEnd, end{records})); err != nil {
		return err
	}
	return out.Flush()
}

func writeAll[T any](write func(string, any) error, kind string, entries []*T) error {
	for _, e := range entries {
		if err := write(kind, e); err != nil {
			return err
		}
	}
	return nil
}

// MaxRecord bounds one record of an encoded state, in bytes.
const MaxRecord = 16 << 20

// DecodeState reads what [EncodeState] wrote, to the end of r. An unknown
// format, kind or field, a record that is missing or out of order, two groups
// of one name, and text after the end are errors.
func DecodeState(r io.Reader) (*State, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxRecord)
	s, records, last := &State{}, 0, ""
	for lines.Scan() {
		kind, err := s.readRecord(lines.Bytes(), records, last)
		if err != nil {
			return nil, fmt.Errorf("decode state, record %d: %w", records+1, err)
		}
		records++
		last = kind
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("decode state after record %d: %w", records, err)
	}
	if last != recordEnd {
		return nil, fmt.Errorf("decode state: cut off after record %d", records)
	}
	s.setSettings(s.settings)
	s.setGroups(s.groups)
	for _, g := range s.groups {
		if other := s.GroupNamed(g.Name); other != g {
			return nil, fmt.Errorf("decode state: groups %q and %q are both named %q", other.ID, g.ID, g.Name)
		}
	}
	return s, nil
}

// readRecord reads the record that follows before others, of which the one
// before was of kind last.
func (s *State) readRecord(line []byte, before int, last string) (kind string, err error) {
	var e envelope
	if err := decodeStrict(line, &e); err != nil {
		return "", err
	}
	if e.Format != Format {
		return "", fmt.Errorf("format %d is unknown, this program knows %d", e.Format, Format)
	}
	if err := checkOrder(last, e.Kind); err != nil {
		return "", err
	}
	switch e.Kind {
	case recordHead:
		var h head
		err = decodeStrict(e.Body, &h)
		s.version = h.Version
	case recordSettings:
		err = decodeStrict(e.Body, &s.settings)
	case recordGroup:
		s.groups, err = readEntry(e.Body, s.groups, groupKey)
	case recordRule:
		s.rules, err = readEntry(e.Body, s.rules, ruleKey)
	case recordIndex:
		s.indices, err = readEntry(e.Body, s.indices, indexKey)
	case recordNode:
		s.nodes, err = readEntry(e.Body, s.nodes, nodeKey)
	case recordEnd:
		var counted end
		if err = decodeStrict(e.Body, &counted); err == nil && counted.Records != before {
			err = fmt.Errorf("the end counts %d records but %d came", counted.Records, before)
		}
	}
	return e.Kind, err
}

// recordOrder is the order of records. The head, the settings and the end come
// once each; the others as often as there are entries.
var recordOrder = []string{recordHead, recordSettings, recordGroup, recordRule, recordIndex, recordNode, recordEnd}

// checkOrder says why a record must not follow one of kind last; "" is the
// start.
func checkOrder(last, kind string) error {
	was, is := slices.Index(recordOrder, last), slices.Index(recordOrder, kind)
	once := kind == recordHead || kind == recordSettings || kind == recordEnd
	switch {
	case is < 0:
		return fmt.Errorf("kind %q is unknown to this program; it was written by a newer one", kind)
	case is < was, is == was && once, is > was+1 && was < slices.Index(recordOrder, recordSettings):
		return fmt.Errorf("a record of kind %q must not follow one of kind %q", kind, last)
	}
	return nil
}

func readEntry[T any](body []byte, entries []*T, keyOf func(*T) string) ([]*T, error) {
	v := new(T)
	if err := decodeStrict(body, v); err != nil {
		return entries, err
	}
	if n := len(entries); n > 0 && keyOf(entries[n-1]) >= keyOf(v) {
		return entries, fmt.Errorf("entry %q is out of order after %q", keyOf(v), keyOf(entries[n-1]))
	}
	return append(entries, v), nil
}
