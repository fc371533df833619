package explore

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
)

// Formats are the names of the formats that [Write] knows, the default first.
func Formats() []string { return []string{"text", "json"} }

// Write writes results in a format of [Formats]. source returns a line of a
// file, "" if it is not known.
func Write(w io.Writer, format string, results []*Result, source func(file string, line int) string) error {
	if format == "json" {
		return writeJSON(w, results)
	}
	var b strings.Builder
	for i, r := range results {
		if i > 0 {
			b.WriteByte('\n')
		}
		r.text(&b, source)
	}
	sideBySide(&b, results)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeJSON(w io.Writer, results []*Result) error {
	if results == nil {
		results = []*Result{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Results []*Result `json:"results"`
	}{results})
}

// Verdict is the worst of the results'. Nothing at all holds.
func Verdict(results []*Result) check.Verdict {
	worst := check.Held
	for _, r := range results {
		if r.Verdict == check.Broken || worst == check.Held {
			worst = r.Verdict
		}
	}
	return worst
}

// Summary counts explorations in one line.
func Summary(results []*Result) string {
	count := map[check.Verdict]int{}
	for _, r := range results {
		count[r.Verdict]++
	}
	return fmt.Sprintf("%d explored: %d held, %d broken, %d undecided", len(results), count[check.Held], count[check.Broken], count[check.Undecided])
}

func (r *Result) text(b *strings.Builder, source func(string, int) string) {
	fmt.Fprintf(b, "%-9s %s  %s\n", r.Verdict, r.File, r.Scenario)
	fmt.Fprintf(b, "profile %s, %s: %s\n", r.Profile, r.Strategy, r.covered())
	if r.TraceHash != "" {
		fmt.Fprintf(b, "trace %s\n", r.TraceHash)
	}
	b.WriteByte('\n')
	r.table(b)
	for _, c := range r.Checks {
		if c.Verdict == check.Held && !strings.HasPrefix(c.Message, "as the file says") {
			continue
		}
		fmt.Fprintf(b, "\n%s: %s\n", c.Verdict, c.Name)
		if c.Message != "" {
			fmt.Fprintf(b, "  %s\n", c.Message)
		}
		if c.Line > 0 {
			fmt.Fprintf(b, "  %s:%d: %s\n", r.File, c.Line, strings.TrimSpace(source(r.File, c.Line)))
		}
		if c.Schedule != "" {
			fmt.Fprintf(b, "  schedule: %s\n", c.Schedule)
		}
	}
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.trace != nil && (o.Forbidden || r.Strategy == Replay) {
			fmt.Fprintf(b, "\n%s, step by step:\n", o.values())
			r.story(b, o.trace)
		}
	}
	if r.Verdict != check.Held {
		fmt.Fprintf(b, "\nrepeat: %s\n", r.Repeat)
	}
}

// covered says how much was executed.
func (r *Result) covered() string {
	n := strconv.Itoa(r.Schedules) + " schedules"
	if r.Schedules == 1 {
		n = "1 schedule"
	}
	if r.Pruned > 0 {
		n += fmt.Sprintf(" and %d cut short", r.Pruned)
	}
	if r.Complete {
		return n + ", every order within the bounds is covered"
	}
	return n + ", not every order"
}

// table writes the outcomes.
func (r *Result) table(b *strings.Builder) {
	if len(r.Outcomes) == 0 {
		return
	}
	var rows [][]string
	head := []string{}
	for _, v := range r.Outcomes[0].Observed {
		head = append(head, v.Name)
	}
	rows = append(rows, append(head, "", "schedules", "preemptions", "shortest"))
	for _, o := range r.Outcomes {
		var row []string
		for _, v := range o.Observed {
			row = append(row, fmt.Sprint(plain(v.Value)))
		}
		mark := ""
		switch {
		case o.Forbidden:
			mark = "forbidden"
		case o.Required:
			mark = "required"
		}
		rows = append(rows, append(row, mark, strconv.Itoa(o.Schedules), strconv.Itoa(o.Preemptions), o.Schedule))
	}
	columns(b, rows)
}

// columns writes rows of cells, two spaces apart.
func columns(b *strings.Builder, rows [][]string) {
	widths := map[int]int{}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += "  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// story writes the events of one schedule in the order in which they happened,
// one lane a column; messages between nodes share one. The registration lag,
// from a version's publication on a node until its last listener has heard of
// it, is marked at the left.
func (r *Result) story(b *strings.Builder, trace []laneEvent) {
	names, column := r.columns(trace)
	rows := [][]string{append([]string{"turn", ""}, names...)}
	lag, last := map[string]bool{}, -1
	for _, e := range trace {
		if e.At == 0 {
			continue // before the first turn
		}
		row := make([]string, len(names)+2)
		if int(e.At) != last {
			last = int(e.At)
			row[0] = strconv.Itoa(last)
		}
		row[1] = window(&e.Event, lag)
		cell, text := 1, label(&e.Event)
		if e.lane != noLane {
			cell = 2 + column[e.lane]
		}
		if e.Kind == message {
			text = r.lanes[e.lane]
		}
		row[cell] += text
		rows = append(rows, row)
	}
	columns(b, rows)
}

// columns returns the heads of the columns of a story, and the column of each
// lane. Nodes whose appliers did nothing and roads without a message have none.
func (r *Result) columns(trace []laneEvent) (names []string, column map[int]int) {
	used := map[int]bool{}
	for _, e := range trace {
		used[e.lane] = used[e.lane] || e.At > 0
	}
	column = map[int]int{}
	messages := -1
	for lane, name := range r.lanes {
		switch {
		case strings.Contains(name, ">"):
			if !used[lane] {
				continue
			}
			if messages < 0 {
				messages = len(names)
				names = append(names, "messages")
			}
			column[lane] = messages
		case used[lane] || !strings.Contains(name, "."):
			column[lane] = len(names)
			names = append(names, name)
		}
	}
	return names, column
}

// window returns the mark of the registration lag beside an event; lag are the
// nodes on which it is open.
func window(e *history.Event, lag map[string]bool) string {
	before := len(lag)
	switch e.Kind {
	case string(probe.ApplierPublished):
		lag[e.Node] = true
	case string(probe.ApplierNotified):
		delete(lag, e.Node)
	}
	switch after := len(lag); {
	case before == 0 && after > 0:
		return "lag ┌"
	case before > 0 && after == 0:
		return "    └"
	case after > before:
		return "    ├"
	case after > 0:
		return "    │"
	}
	return ""
}

// label says in a few words what an event is.
func label(e *history.Event) string {
	switch e.Kind {
	case history.RequestSent:
		return "search"
	case history.WriteBegin:
		return e.Detail
	case history.RequestAnswered, history.WriteEnd:
		if e.Status == 0 {
			return "→ no answer"
		}
		return "→ " + strconv.Itoa(e.Status)
	}
	text := e.Kind
	if e.Listener != "" {
		text += " " + e.Listener
	}
	if e.Limit > 0 && e.Kind != string(probe.AcquireBegin) {
		text += fmt.Sprintf(" %d/%d", e.Held, e.Limit)
	}
	if e.Search == "" || e.Kind == string(probe.CoordinatorRead) {
		if e.Version > 0 {
			text += fmt.Sprintf(" v%d", e.Version)
		}
	}
	if e.Kind == string(probe.Counted) {
		text = "wlm.counted on " + orNobody(e.Detail)
	}
	return text
}

func orNobody(group string) string {
	if group == "" {
		return "nobody"
	}
	return group
}
