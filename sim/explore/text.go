package explore

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/columns"
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
	for _, c := range Compared(results) {
		fmt.Fprintf(&b, "\n%s side by side, in schedules\n\n", c.File)
		writeLines(&b, columns.Lines(c.Rows, 0))
	}
	if len(results) > 1 {
		fmt.Fprintf(&b, "\n%s\n", Summary(results))
	}
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

// lineWidth is how wide a line may get, where it can be broken.
const lineWidth = 120

func (r *Result) text(b *strings.Builder, source func(string, int) string) {
	fmt.Fprintf(b, "%-9s %s  %s\n", r.Verdict, r.File, r.Scenario)
	fmt.Fprintf(b, "profile %s, %s: %s\n", r.Profile, r.how(), r.Covered())
	if r.TraceHash != "" {
		fmt.Fprintf(b, "trace %s\n", r.TraceHash)
	}
	if len(r.Outcomes) > 0 {
		b.WriteByte('\n')
		writeLines(b, columns.Lines(r.Table(), lineWidth))
	}
	for _, c := range r.Findings() {
		fmt.Fprintf(b, "\n%s: %s\n", c.Verdict, c.Name)
		if c.Message != "" {
			fmt.Fprintf(b, "  %s\n", columns.Indent(c.Message, "  ", lineWidth))
		}
		if c.Line > 0 {
			fmt.Fprintf(b, "  %s:%d: %s\n", r.File, c.Line, strings.TrimSpace(source(r.File, c.Line)))
		}
		if c.Schedule != "" {
			fmt.Fprintf(b, "  %s\n", columns.Indent("schedule: "+c.Schedule, "    ", lineWidth))
		}
	}
	for _, s := range r.Stories() {
		fmt.Fprintf(b, "\n%s, step by step:\n", s.Title)
		writeLines(b, s.Lines)
	}
	if r.Verdict != check.Held {
		for i, command := range r.Repeats() {
			fmt.Fprintf(b, "%srepeat: %s\n", "\n"[min(i, 1):], command)
		}
	} else if one := r.toSee(); one != "" {
		fmt.Fprintf(b, "\nstep by step: %s\n", one)
	}
}

// how is the strategy, with the seed where schedules are drawn.
func (r *Result) how() string {
	if r.Strategy == Random || r.Strategy == PCT {
		return fmt.Sprintf("%s from seed %d", r.Strategy, r.seed)
	}
	return r.Strategy
}

func writeLines(b *strings.Builder, lines []string) {
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
}

// Findings are the checks that a reader wants to see: those that did not hold,
// and those that broke as the file says.
func (r *Result) Findings() []Check {
	var found []Check
	for _, c := range r.Checks {
		if c.Verdict != check.Held || strings.HasPrefix(c.Message, check.AsTold) {
			found = append(found, c)
		}
	}
	return found
}

// Repeats are the commands that explore again: the one of this lane, and where
// that is the plain one and the cluster is whole, whose schedules repeat to the
// bit there alone, that of the exact lane.
func (r *Result) Repeats() []string {
	commands := []string{r.Repeat}
	if rest, plain := strings.CutPrefix(r.Repeat, "wlmsim "); plain && r.whole() {
		commands = append(commands, "wlmsim-exact "+rest)
	}
	return commands
}

// whole says whether a whole cluster was explored.
func (r *Result) whole() bool {
	return slices.ContainsFunc(r.lanes, func(lane string) bool { return strings.Contains(lane, ">") })
}

// toSee is the command that shows what broke, as the file says, step by step;
// "" if nothing did, or if it was shown.
func (r *Result) toSee() string {
	if r.Strategy == Replay {
		return ""
	}
	for _, c := range r.Findings() {
		s, err := ParseSchedule(c.Schedule)
		if err != nil || c.Schedule == "" {
			continue
		}
		return repeat(&Options{Strategy: Replay, Schedule: s, Path: r.File, Set: r.set}, r.Profile)
	}
	return ""
}

// Covered says in words how much was executed.
func (r *Result) Covered() string {
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

// Table is the outcomes, a row each below one of heads: the observed values,
// whether it is forbidden or required, how many schedules led to it, and the
// shortest one with its preemptions.
func (r *Result) Table() [][]string {
	var head []string
	for _, v := range r.Outcomes[0].Observed {
		head = append(head, v.Name)
	}
	rows := [][]string{append(head, "", "schedules", "preemptions", "shortest")}
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
	return rows
}
