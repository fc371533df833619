package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// writeJUnit writes a suite for each file and a test case for each run. A run
// that broke is a failure, one that is undecided an error.
func writeJUnit(w io.Writer, results []world.Result, source Source) error {
	all := junit.Testsuites{Name: "wlmsim"}
	var total float64
	for len(results) > 0 {
		n := 1
		for n < len(results) && results[n].File == results[0].File {
			n++
		}
		suite, took := suiteOf(results[:n], source)
		suite.ID = len(all.Suites)
		all.AddSuite(suite)
		total += took
		results = results[n:]
	}
	all.Time = xmlSeconds(total)
	return all.WriteXML(w)
}

func suiteOf(results []world.Result, source Source) (suite junit.Testsuite, took float64) {
	suite.Name, suite.File = xmlText(results[0].File), xmlText(results[0].File)
	for i := range results {
		r := &results[i]
		took += r.WallSeconds
		t := junit.Testcase{
			Name: xmlText(fmt.Sprintf("%s (seed %d, %s)", r.Scenario, r.Seed, r.Profile)), Classname: suite.Name, Time: xmlSeconds(r.WallSeconds),
		}
		switch r.Verdict {
		case check.Broken:
			t.Failure = complaint(r, source)
		case check.Undecided:
			t.Error = complaint(r, source)
		}
		suite.AddTestcase(t)
	}
	suite.Time = xmlSeconds(took)
	return suite, took
}

func complaint(r *world.Result, source Source) *junit.Result {
	c := &junit.Result{Type: string(r.Verdict)}
	var b strings.Builder
	for _, found := range telling(r) {
		text := checkText(&found)
		if c.Message == "" && found.Verdict == r.Verdict {
			c.Message, _, _ = strings.Cut(xmlText(text), "\n")
		}
		fmt.Fprintf(&b, "%s: %s\n", found.Verdict, text)
		if line := source(r.File, found.Line); line != "" {
			fmt.Fprintf(&b, "%s:%d: %s\n", r.File, found.Line, strings.TrimSpace(line))
		}
	}
	for _, command := range repeats(r) {
		fmt.Fprintf(&b, "repeat: %s\n", command)
	}
	c.Data = xmlText(b.String())
	return c
}

func xmlSeconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// xmlText replaces what XML cannot hold.
func xmlText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0xFFFE || r == 0xFFFF {
			return '\uFFFD'
		}
		return r
	}, text)
}
