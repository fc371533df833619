package scenario_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

func TestAChangedCopyIsCheckedAsAWhole(t *testing.T) {
	f, err := scenario.Parse("f.yaml", []byte(base+"steps:\n- {at: 1s, search: {group: analytics}}\n"))
	require.NoError(t, err)
	before := scenario.Print(f)
	g, err := f.Changed(func(g *scenario.File) { g.Steps[0].Search.User = "bob" })
	require.NoError(t, err)
	require.Equal(t, "bob", g.Steps[0].Search.User)
	_, err = f.Changed(func(g *scenario.File) { g.Groups = nil })
	require.ErrorContains(t, err, `group "analytics"`)
	require.Equal(t, string(before), string(scenario.Print(f)), "the file itself stays")
}

// The traces of a file belong to its copy.
func TestAChangedCopyKeepsItsTraces(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("t.csv", "time,user,roles,index,service_time\n1s,bob,,,\n")
	f, err := scenario.Read(write("f.yaml", base+"load: [{name: l, arrive: {trace: t.csv}}]\n"))
	require.NoError(t, err)
	g, err := f.Changed(func(g *scenario.File) { g.Load[0].From = 5 })
	require.NoError(t, err)
	require.Len(t, g.Trace("l"), 1)
	require.Equal(t, f.Trace("l"), g.Trace("l"))
}
