package report_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/report"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

const two = `version: 1
name: Two searches | in every order
explore:
  node: m1
  before: [{put_group: {name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}}]
  actors: {first: [{search: {id: first, user: bob, group: late, hold: true}}], second: [{search: {id: second, user: bob, group: late}}]}
  observe: {first: first.status, second: second.status}
  forbid: [first == 429]
under:
  submitted: {forbid: [], breaks: [principal_stays]}
`

func explored(t *testing.T) []*explore.Result {
	t.Helper()
	f, err := scenario.Parse("two.yaml", []byte(two))
	require.NoError(t, err)
	var all []*explore.Result
	for _, profile := range []string{"submitted", "reviewed"} {
		r, err := explore.Run(f, explore.Options{Path: "two.yaml", Profile: profile})
		require.NoError(t, err)
		r.WallSeconds = 0.5
		all = append(all, r)
	}
	return all
}

// Promises 1, 2 and 5, of explorations.
func TestExplorationsInEveryFormat(t *testing.T) {
	results := explored(t)
	for _, format := range report.Formats() {
		t.Run(format, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, report.WriteExplored(&b, format, results, source))
			requireGolden(t, "explored."+format, b.String())
		})
	}
	require.ErrorContains(t, report.WriteExplored(io.Discard, "html", results, source), `format "html"`)
}

// Promise 4, of explorations.
func TestNoExplorationBreaksOutOfItsPlace(t *testing.T) {
	results := explored(t)
	for _, r := range results {
		r.Scenario = "a | b\n```\x1b[2J</testsuite>"
		r.Checks[0].Message = r.Scenario
	}
	for _, format := range []string{"junit", "markdown"} {
		var b bytes.Buffer
		require.NoError(t, report.WriteExplored(&b, format, results, nil))
		require.NotContains(t, b.String(), "\x1b", format)
		if format == "junit" {
			for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
				_, err := d.Token()
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
			}
			require.Equal(t, 1, strings.Count(b.String(), "</testsuite>"))
		}
	}
}
