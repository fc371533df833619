package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode command %s: %w", c.kind(), err)
	}
	return json.Marshal(envelope{Format, c.kind(), body})
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

func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("text after the end of the value")
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
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode state, %s: %w", kind, err)
		}
		line, err := json.Marshal(envelope{Format, kind, text})
		if err != nil {
			return fmt.Errorf("encode state, %s: %w", kind, err)
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
// format, kind or field, a missing end, or entries out of order are errors.
func DecodeState(r io.Reader) (*State, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxRecord)
	s, records, ended := &State{}, 0, false
	for lines.Scan() {
		if ended {
			return nil, fmt.Errorf("decode state: a record follows the end")
		}
		var err error
		if ended, err = s.readRecord(lines.Bytes(), records); err != nil {
			return nil, fmt.Errorf("decode state, record %d: %w", records+1, err)
		}
		records++
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("decode state after record %d: %w", records, err)
	}
	if !ended {
		return nil, fmt.Errorf("decode state: cut off after record %d", records)
	}
	return s.settled(), nil
}

func (s *State) readRecord(line []byte, before int) (ended bool, err error) {
	var e envelope
	if err := decodeStrict(line, &e); err != nil {
		return false, err
	}
	if e.Format != Format {
		return false, fmt.Errorf("format %d is unknown, this program knows %d", e.Format, Format)
	}
	if (e.Kind == recordHead) != (before == 0) {
		return false, fmt.Errorf("a state begins with one record of kind %q, but this is %q", recordHead, e.Kind)
	}
	switch e.Kind {
	case recordHead:
		var h head
		err = decodeStrict(e.Body, &h)
		s.version = h.Version
	case recordSettings:
		s.settings = Settings{}
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
		return true, err
	default:
		err = fmt.Errorf("kind %q is unknown to this program; it was written by a newer one", e.Kind)
	}
	return false, err
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
