package scenario_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

func TestX(t *testing.T) {
	text, err := os.ReadFile("testdata/design.yaml")
	require.NoError(t, err)
	f, err := scenario.Parse("design.yaml", text)
	require.NoError(t, err)
	t.Log("\n" + string(scenario.Print(f)))
	f2, err := scenario.Parse("design.yaml", scenario.Print(f))
	require.NoError(t, err)
	require.True(t, scenario.Equal(f, f2))
	_, err = scenario.Parse("design.yaml", text, "groups.analytics.throttling.node_limit=0", "load.nightly.arrive.closed=x", "steps.one.search.service_tim=1s", "switches.counters=plane", "cluster.data=5", "expect=[one.status == 200, one.statos == 1]", "cluster.data=1")
	t.Log(err)
}
