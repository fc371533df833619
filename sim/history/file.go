package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// Version is the version of the file format. A reader refuses others.
const Version = 1

// MaxLine is the greatest length of a line that [Read] takes, in bytes: far
// more than the longest event of a node, whose names are bounded.
const MaxLine = 1 << 20

// Header says which run a history is of.
type Header struct {
	Scenario string // name of the scenario
	Seed     uint64
	Profile  string
	Events   int    // lines that follow
	Dropped  uint64 // events after them that were not kept
}

// Header returns the header of the log of a run.
func (l *Log) Header(scenario string, seed uint64, profile string) Header {
	return Header{Scenario: scenario, Seed: seed, Profile: profile, Events: int(l.kept), Dropped: l.Dropped()}
}

// Write writes a history. The header's number of events is that of events,
// whatever it says.
func Write(w io.Writer, h Header, events []Event) error {
	h.Events = len(events)
	b := bufio.NewWriter(w)
	line := append(h.append(nil), '\n')
	_, err := b.Write(line)
	for i := 0; i < len(events) && err == nil; i++ {
		line = append(events[i].AppendJSON(line[:0]), '\n')
		_, err = b.Write(line)
	}
	return errors.Join(err, b.Flush())
}

func (h *Header) append(b []byte) []byte {
	b = fmt.Appendf(b, `{"wlmsim_history":%d,"scenario":`, Version)
	b = appendText(b, h.Scenario)
	b = append(b, `,"seed":`...)
	b = strconv.AppendUint(b, h.Seed, 10)
	b = append(b, `,"profile":`...)
	b = appendText(b, h.Profile)
	return fmt.Appendf(b, `,"events":%d,"dropped":%d}`, h.Events, h.Dropped)
}

// AppendJSON appends the event's line, without the line feed.
func (e *Event) AppendJSON(b []byte) []byte {
	b = append(b, `{"at":`...)
	b = strconv.AppendInt(b, int64(e.At), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"kind":`...)
	b = appendText(b, e.Kind)
	b = appendField(b, `,"node":`, e.Node)
	b = appendNumber(b, `,"life":`, e.Life)
	b = appendField(b, `,"search":`, e.Search)
	b = appendField(b, `,"group":`, e.Group)
	b = appendField(b, `,"listener":`, e.Listener)
	if e.Version != 0 {
		b = append(b, `,"version":`...)
		b = strconv.AppendUint(b, e.Version, 10)
	}
	if e.Bucket != 0 {
		b = append(b, `,"bucket":"`...)
		b = append(appendHex(b, e.Bucket), '"')
	}
	b = appendNumber(b, `,"held":`, e.Held)
	b = appendNumber(b, `,"limit":`, e.Limit)
	b = appendNumber(b, `,"status":`, e.Status)
	b = appendField(b, `,"detail":`, e.Detail)
	return append(b, '}')
}

// appendHex appends 16 hexadecimal digits.
func appendHex(b []byte, v uint64) []byte {
	var digits [8]byte
	binary.BigEndian.PutUint64(digits[:], v)
	return hex.AppendEncode(b, digits[:])
}

func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(append(b, name...), value)
}

func appendNumber(b []byte, name string, value int) []byte {
	if value == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), int64(value), 10)
}

// appendText appends a JSON string that escapes only what must be.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r) // U+FFFD for a byte that does not belong there
			i += size
			continue
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}

// headerText and eventText are lines before they are held to the canonical
// form.
type headerText struct {
	Version  *int   `json:"wlmsim_history"`
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`
	Profile  string `json:"profile"`
	Events   int    `json:"events"`
	Dropped  uint64 `json:"dropped"`
}

type eventText struct {
	At       int64  `json:"at"`
	Seq      uint64 `json:"seq"`
	Kind     string `json:"kind"`
	Node     string `json:"node"`
	Life     int    `json:"life"`
	Search   string `json:"search"`
	Group    string `json:"group"`
	Listener string `json:"listener"`
	Version  uint64 `json:"version"`
	Bucket   string `json:"bucket"`
	Held     int    `json:"held"`
	Limit    int    `json:"limit"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
}

// Read reads a whole history. It refuses another version, a line that is not
// in the canonical form, events out of order, and a number of events that is
// not the header's.
func Read(r io.Reader) (Header, []Event, error) {
	lines := bufio.NewReader(r)
	text, err := readLine(lines)
	if err != nil {
		return Header{}, nil, fmt.Errorf("line 1: %w", err)
	}
	h, err := parseHeader(text)
	if err != nil {
		return Header{}, nil, fmt.Errorf("line 1: %w", err)
	}
	var events []Event
	for {
		e, err := readEvent(lines, uint64(len(events))+1)
		if err == io.EOF {
			break
		}
		if err != nil {
			return Header{}, nil, fmt.Errorf("line %d: %w", len(events)+2, err)
		}
		events = append(events, e)
	}
	if len(events) != h.Events {
		return Header{}, nil, fmt.Errorf("the history has %d events: its header says %d", len(events), h.Events)
	}
	return h, events, nil
}

// readEvent reads the event of a place. io.EOF: there are no more.
func readEvent(lines *bufio.Reader, place uint64) (Event, error) {
	text, err := readLine(lines)
	if err != nil {
		return Event{}, err
	}
	e, err := parseEvent(text)
	if err == nil && e.Seq != place {
		err = fmt.Errorf("seq is %d: want %d", e.Seq, place)
	}
	return e, err
}

// readLine returns the next line without its line feed, which must be there.
// io.EOF: there is none.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLine:
			return nil, fmt.Errorf("longer than %d bytes", MaxLine)
		case err == nil:
			return line[:len(line)-1], nil
		case err == io.EOF && len(line) > 0:
			return nil, errors.New("the line feed at its end is missing")
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

func parseHeader(line []byte) (Header, error) {
	var t headerText
	if err := json.Unmarshal(line, &t); err != nil {
		return Header{}, fmt.Errorf("not the header of a history: %w", err)
	}
	if t.Version == nil {
		return Header{}, errors.New("not the header of a history: wlmsim_history is missing")
	}
	if *t.Version != Version {
		return Header{}, fmt.Errorf("a history of version %d: this program reads version %d", *t.Version, Version)
	}
	if t.Events < 0 {
		return Header{}, fmt.Errorf("events is %d: 0 or more", t.Events)
	}
	h := Header{Scenario: t.Scenario, Seed: t.Seed, Profile: t.Profile, Events: t.Events, Dropped: t.Dropped}
	return h, canonical(line, h.append(nil))
}

func parseEvent(line []byte) (Event, error) {
	var t eventText
	if err := json.Unmarshal(line, &t); err != nil {
		return Event{}, fmt.Errorf("not an event: %w", err)
	}
	if t.Kind == "" {
		return Event{}, errors.New("an event without a kind")
	}
	e := Event{
		At: time.Duration(t.At), Seq: t.Seq, Kind: t.Kind, Node: t.Node, Life: t.Life, Search: t.Search, Group: t.Group,
		Listener: t.Listener, Version: t.Version, Held: t.Held, Limit: t.Limit, Status: t.Status, Detail: t.Detail,
	}
	if t.Bucket != "" {
		var err error
		if e.Bucket, err = strconv.ParseUint(t.Bucket, 16, 64); err != nil {
			return Event{}, fmt.Errorf("bucket %q is not 16 hexadecimal digits", t.Bucket)
		}
	}
	return e, canonical(line, e.AppendJSON(nil))
}

// canonical refuses a line that is not what this package writes.
func canonical(line, want []byte) error {
	if bytes.Equal(line, want) {
		return nil
	}
	return fmt.Errorf("not in the canonical form, which is %s", want)
}
