package explore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// A result that went to another process is written as it was, steps included.
func TestAResultIsCarriedWhole(t *testing.T) {
	const lag = "../../scenarios/explore/the-registration-lag.yaml"
	for name, r := range map[string]*explore.Result{
		"held":   run(t, read(t, lag), explore.Options{Path: lag}),
		"broken": run(t, read(t, lag, "switches.missing_counters=default_group"), explore.Options{Path: lag}),
		"replay": run(t, read(t, lag), explore.Options{Path: lag, Schedule: explore.Schedule{}}),
		"empty":  {Outcomes: []explore.Outcome{}, Checks: []explore.Check{}},
	} {
		text, err := r.MarshalBinary()
		require.NoError(t, err, name)
		var carried explore.Result
		require.NoError(t, carried.UnmarshalBinary(text), name)
		for _, format := range explore.Formats() {
			require.Equal(t, written(t, r, format), written(t, &carried, format), "%s as %s", name, format)
		}
	}
	require.Error(t, new(explore.Result).UnmarshalBinary([]byte("no result")))
}

func written(t *testing.T, r *explore.Result, format string) string {
	var b strings.Builder
	require.NoError(t, explore.Write(&b, format, []*explore.Result{r}, func(string, int) string { return "" }))
	return b.String()
}

// That nobody writes a group does not leave open in which order they are written.
func TestNoOperationOnGroupsIsAHistoryToo(t *testing.T) {
	f, err := scenario.Parse("two.yaml", []byte(`version: 1
name: Two searches
explore:
  node: m1
  actors: {first: [{search: {id: first}}], second: [{search: {id: second}}]}
  observe: {first: first.status}
`))
	require.NoError(t, err)
	require.Equal(t, check.Held, run(t, f, explore.Options{}).Verdict)
}
