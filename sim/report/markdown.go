package report

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// writeMarkdown writes a table of the runs, and a section for each that did
// not hold.
func writeMarkdown(w io.Writer, results []world.Result, source Source) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n\n", Summary(results))
	fmt.Fprintln(b, "| verdict | scenario | file | seed | profile | virtual time | searches | throttled | failed | p99 |")
	fmt.Fprintln(b, "|---|---|---|--:|---|--:|--:|--:|--:|--:|")
	for i := range results {
		r := &results[i]
		fmt.Fprintf(b, "| %s | %s | %s | %d | %s | %s | %d | %d | %d | %s ms |\n", r.Verdict, cell(r.Scenario), cell(r.File), r.Seed, cell(r.Profile),
			seconds(r.VirtualSeconds), r.Searches.Sent, r.Searches.Throttled, r.Searches.Failed, short(r.LatencyMS.P99))
	}
	for _, p := range parts(results) {
		if p.compared != nil {
			p.compared.markdown(b)
		}
	}
	for i := range results {
		if r := &results[i]; r.Verdict != check.Held {
			fmt.Fprintf(b, "\n## %s: %s, seed %d, %s\n\n", r.Verdict, cell(r.Scenario), r.Seed, cell(r.Profile))
			b.WriteString(fenced(findings(r, source)))
		}
	}
	return b.Flush()
}

// findings are what a run did not keep and how to repeat it, as plain lines.
func findings(r *world.Result, source Source) string {
	var b strings.Builder
	for _, c := range telling(r) {
		fmt.Fprintf(&b, "%s: %s\n", c.Verdict, indented(checkText(&c), "  "))
		if line := source(r.File, c.Line); line != "" {
			fmt.Fprintf(&b, "  %s:%d: %s\n", clean(r.File), c.Line, clean(strings.TrimSpace(line)))
		}
	}
	for _, command := range repeats(r) {
		fmt.Fprintf(&b, "repeat: %s\n", clean(command))
	}
	return b.String()
}

// fenced puts a text into a block whose fence does not occur in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + fence + "\n"
}

// cell keeps a text within its cell of a table, and from being markup.
func cell(text string) string {
	var b strings.Builder
	for _, r := range clean(text) {
		if strings.ContainsRune("\\|`*_<>[]#", r) {
			b.WriteByte('\\')
		}
		if r == '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// short writes a number of milliseconds with at most one place.
func short(ms float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", ms), ".0") }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
