package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// writeText writes a line a run, more for one that did not hold, and a summary.
// Runs of one file under several profiles are columns, and only those that did
// not hold, or have something to tell, get their lines as well.
func writeText(w io.Writer, results []world.Result, source Source) error {
	b := bufio.NewWriter(w)
	for i, p := range parts(results) {
		if p.compared != nil {
			if i > 0 {
				fmt.Fprintln(b)
			}
			p.compared.text(b)
		}
		for _, r := range p.runs {
			if p.compared == nil || r.Verdict != check.Held || len(telling(r)) > 0 {
				writeRun(b, r, source)
			}
		}
	}
	if len(results) > 1 {
		fmt.Fprintf(b, "\n%s\n", Summary(results))
	}
	return b.Flush()
}

func writeRun(w io.Writer, r *world.Result, source Source) {
	fmt.Fprintf(w, "%-9s %s  seed %d  %s  %s\n", r.Verdict, clean(r.File), r.Seed, r.Profile, took(r))
	for _, c := range telling(r) {
		fmt.Fprintf(w, "  %-9s %s\n", c.Verdict, indented(checkText(&c), "            "))
		if line := source(r.File, c.Line); line != "" {
			fmt.Fprintf(w, "            %s:%d: %s\n", clean(r.File), c.Line, clean(strings.TrimSpace(line)))
		}
	}
	if r.Verdict != check.Held {
		for _, command := range repeats(r) {
			fmt.Fprintf(w, "  %-9s %s\n", "repeat", clean(command))
		}
	}
}

// took says how long a run took, and what it did in virtual time. An exploration
// does nothing there, and neither does a run that could not be done.
func took(r *world.Result) string {
	if r.VirtualSeconds == 0 && r.Searches.Sent == 0 {
		return "in " + seconds(r.WallSeconds)
	}
	return fmt.Sprintf("%s in %s  %s", seconds(r.VirtualSeconds), seconds(r.WallSeconds), searches(&r.Searches))
}

// checkText is what a check says, in words. An expectation repeats its text in
// its message.
func checkText(c *check.Result) string {
	switch {
	case c.Message == "":
		return c.Name
	case strings.HasPrefix(c.Name, "expect ") && strings.HasSuffix(c.Message, strings.TrimPrefix(c.Name, "expect ")):
		return c.Message
	}
	return c.Name + ": " + c.Message
}

func searches(s *world.Searches) string {
	text := "1 search"
	if s.Sent != 1 {
		text = fmt.Sprintf("%d searches", s.Sent)
	}
	for _, n := range []struct {
		count int
		what  string
	}{{s.Throttled, "throttled"}, {s.Failed, "failed"}, {s.Cancelled, "cancelled"}} {
		if n.count > 0 {
			text += fmt.Sprintf(", %d %s", n.count, n.what)
		}
	}
	return text
}

// indented puts every further line of a text under the first one.
func indented(text, by string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = clean(strings.TrimRight(lines[i], " \r"))
	}
	return strings.Join(lines, "\n"+by)
}

// clean replaces what would do something to a terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text)
}
