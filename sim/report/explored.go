package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
)

// WriteExplored writes what came of explorations in one of the [Formats]: a
// result for each file and profile, and in text and markdown the outcomes of a
// file under several profiles side by side. The error is that of the writer, or
// of [CheckFormat].
func WriteExplored(w io.Writer, format string, results []*explore.Result, source Source) error {
	if source == nil {
		source = func(string, int) string { return "" }
	}
	switch format {
	case "text", "json":
		return explore.Write(w, format, results, source)
	case "junit":
		return exploredJUnit(w, results, source)
	case "markdown":
		return exploredMarkdown(w, results, source)
	}
	return CheckFormat(format)
}

// exploredJUnit writes a suite for each file and a test case for each profile.
func exploredJUnit(w io.Writer, results []*explore.Result, source Source) error {
	all := junit.Testsuites{Name: "wlmsim"}
	var total float64
	for len(results) > 0 {
		suite := junit.Testsuite{ID: len(all.Suites), Name: xmlText(results[0].File), File: xmlText(results[0].File)}
		var took float64
		for len(results) > 0 && xmlText(results[0].File) == suite.Name {
			r := results[0]
			results = results[1:]
			took += r.WallSeconds
			t := junit.Testcase{
				Name: xmlText(fmt.Sprintf("%s (%s, %s)", r.Scenario, r.Profile, r.Strategy)), Classname: suite.Name, Time: xmlSeconds(r.WallSeconds),
			}
			switch r.Verdict {
			case check.Broken:
				t.Failure = exploredComplaint(r, source)
			case check.Undecided:
				t.Error = exploredComplaint(r, source)
			}
			suite.AddTestcase(t)
		}
		suite.Time = xmlSeconds(took)
		all.AddSuite(suite)
		total += took
	}
	all.Time = xmlSeconds(total)
	return all.WriteXML(w)
}

func exploredComplaint(r *explore.Result, source Source) *junit.Result {
	c := &junit.Result{Type: string(r.Verdict), Data: xmlText(exploredFindings(r, source))}
	for _, found := range r.Findings() {
		if found.Verdict == r.Verdict {
			c.Message, _, _ = strings.Cut(xmlText(checkText(&found.Result)), "\n")
			break
		}
	}
	return c
}

// exploredFindings are what did not hold, step by step, and how to repeat it,
// as plain lines.
func exploredFindings(r *explore.Result, source Source) string {
	var b strings.Builder
	for _, c := range r.Findings() {
		fmt.Fprintf(&b, "%s: %s\n", c.Verdict, indented(checkText(&c.Result), "  "))
		if line := source(r.File, c.Line); line != "" {
			fmt.Fprintf(&b, "  %s:%d: %s\n", clean(r.File), c.Line, clean(strings.TrimSpace(line)))
		}
		if c.Schedule != "" {
			fmt.Fprintf(&b, "  schedule: %s\n", c.Schedule)
		}
	}
	for _, s := range r.Stories() {
		fmt.Fprintf(&b, "\n%s, step by step:\n", clean(s.Title))
		for _, line := range s.Lines {
			fmt.Fprintln(&b, clean(line))
		}
	}
	b.WriteByte('\n')
	for _, command := range r.Repeats() {
		fmt.Fprintf(&b, "repeat: %s\n", clean(command))
	}
	return b.String()
}

// exploredMarkdown writes a table of the explorations, the outcomes of each,
// side by side where a file was explored under several profiles, and a block
// for each that did not hold.
func exploredMarkdown(w io.Writer, results []*explore.Result, source Source) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n\n", explore.Summary(results))
	fmt.Fprintln(b, "| verdict | scenario | file | profile | strategy | executed | time |")
	fmt.Fprintln(b, "|---|---|---|---|---|---|--:|")
	for _, r := range results {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n",
			r.Verdict, cell(r.Scenario), cell(r.File), cell(r.Profile), cell(r.Strategy), cell(r.Covered()), seconds(r.WallSeconds))
	}
	for _, c := range explore.Compared(results) {
		fmt.Fprintf(b, "\n## %s side by side, in schedules\n\n", cell(c.File))
		markdownTable(b, c.Rows)
	}
	for _, r := range results {
		fmt.Fprintf(b, "\n## %s: %s, %s\n", r.Verdict, cell(r.Scenario), cell(r.Profile))
		if len(r.Outcomes) > 0 {
			b.WriteByte('\n')
			markdownTable(b, r.Table())
		}
		if r.Verdict != check.Held {
			fmt.Fprintf(b, "\n%s", fenced(exploredFindings(r, source)))
		}
	}
	return b.Flush()
}

// markdownTable writes rows, of which the first one has the heads.
func markdownTable(w io.Writer, rows [][]string) {
	for i, row := range rows {
		for _, text := range row {
			fmt.Fprintf(w, "| %s ", cell(text))
		}
		fmt.Fprintln(w, "|")
		if i == 0 {
			fmt.Fprintln(w, strings.Repeat("|---", len(row))+"|")
		}
	}
}
