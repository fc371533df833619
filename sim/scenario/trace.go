package scenario

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// MaxTraceBytes bounds the text of a trace.
const MaxTraceBytes = 64 << 20

// traceColumns are the columns of a trace, which its first line names.
var traceColumns = [...]string{"time", "user", "roles", "index", "service_time"}

// Traced is one arrival of a trace.
type Traced struct {
	At          time.Duration // from the start of the load
	User        string        // "" is no principal
	Roles       []string
	Index       string        // "" is all
	ServiceTime time.Duration // of each shard; -1: the index's own
}

func readTrace(path string) ([]Traced, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseTrace(path, text)
}

// ParseTrace reads a CSV text: a line that names the columns time, user,
// roles (split by semicolons), index and service_time, then a line an arrival,
// in order of time. Cells but the time may be empty. The error, if any, is
// [Faults].
func ParseTrace(name string, text []byte) ([]Traced, error) {
	if len(text) > MaxTraceBytes {
		return nil, Faults{{File: name, Line: 1, Col: 1, Message: fmt.Sprintf("the trace has %d bytes: at most %d", len(text), MaxTraceBytes)}}
	}
	t := tracer{source: sourceOf(name, text)}
	t.Reader = csv.NewReader(bytes.NewReader(text))
	t.FieldsPerRecord = -1
	for first := true; ; first = false {
		record, err := t.Read()
		switch {
		case err == io.EOF:
			if first {
				t.fault(1, 1, "the trace lacks its first line: %s", strings.Join(traceColumns[:], ","))
			}
			return t.rows, t.faults.orNil()
		case err != nil:
			t.broken(err)
			return nil, t.faults.orNil()
		case first:
			t.header(record)
		case len(record) != len(traceColumns):
			t.cell(0, "%d cells: there are %d columns", len(record), len(traceColumns))
		default:
			t.row(record)
		}
	}
}

type tracer struct {
	*csv.Reader
	source source
	rows   []Traced
	faults Faults
}

func (t *tracer) fault(line, col int, format string, args ...any) {
	f := t.source.at(line, col)
	f.Message = fmt.Sprintf(format, args...)
	t.faults = append(t.faults, f)
}

func (t *tracer) cell(i int, format string, args ...any) {
	line, col := t.FieldPos(i)
	t.fault(line, col, format, args...)
}

func (t *tracer) broken(err error) {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		t.fault(bad.Line, bad.Column, "%v", bad.Err)
		return
	}
	t.fault(1, 1, "%v", err)
}

func (t *tracer) header(record []string) {
	if !slices.Equal(record, traceColumns[:]) {
		t.cell(0, "the first line must be %s", strings.Join(traceColumns[:], ","))
	}
}

func (t *tracer) row(record []string) {
	row := Traced{User: record[1], Index: record[3], ServiceTime: -1}
	row.At = t.time(record, 0)
	if n := len(t.rows); n > 0 && row.At < t.rows[n-1].At {
		t.cell(0, "time %s is before the line above", record[0])
	}
	if record[2] != "" {
		row.Roles = strings.Split(record[2], ";")
	}
	if record[4] != "" {
		if row.ServiceTime = t.time(record, 4); row.ServiceTime > cluster.MaxServiceTime {
			t.cell(4, "service time %s is over %s", record[4], shortTime(cluster.MaxServiceTime))
		}
	}
	t.rows = append(t.rows, row)
}

func (t *tracer) time(record []string, i int) time.Duration {
	var d Duration
	if err := d.UnmarshalText([]byte(record[i])); err != nil {
		t.cell(i, "%s: %v", traceColumns[i], err)
	}
	return time.Duration(d)
}
