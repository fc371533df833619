package explore_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/columns"
	"github.com/wlmsim/wlmsim/sim/explore"
)

var rewrite = flag.Bool("rewrite", false, "write the golden texts anew")

// The answer of a failing exploration, as a person reads it.
func TestTheAnswerOfAFailingExploration(t *testing.T) {
	const file, golden = "testdata/lag.yaml", "testdata/lag.golden"
	r := run(t, read(t, file), explore.Options{Path: file})
	got := written(t, r, "text")
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "repeat: ") {
			require.LessOrEqual(t, columns.Width(strings.TrimRight(line, "\n")), 120, line)
		}
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
