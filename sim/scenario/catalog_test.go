package scenario_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Promise 7: every example parses, and says what it is an example of.
func TestEveryExampleParses(t *testing.T) {
	for _, item := range scenario.Catalog() {
		text := base + item.Example
		if item.Kind != scenario.Promised {
			text = base + "steps:\n" + item.Example
		}
		f, err := scenario.Parse(item.Name, []byte(text))
		require.NoError(t, err)
		require.Contains(t, item.Example, item.Name)
		require.NotEmpty(t, item.Means)
		if item.Kind != scenario.Promised && item.Kind != scenario.NodeStep {
			require.Equal(t, item.Name, f.Steps[len(f.Steps)-1].Name())
		}
	}
}

// Promise 7: nothing lacks in the catalog, and nothing is there twice.
func TestTheCatalogIsWhole(t *testing.T) {
	var want, got []string
	action := reflect.TypeFor[scenario.Action]()
	for i := range action.NumField() {
		want = append(want, action.Field(i).Tag.Get("yaml"))
	}
	for _, s := range probe.Steps() {
		want = append(want, string(s))
	}
	for _, m := range scenario.Promises() {
		want = append(want, string(m.Promise))
	}
	for _, item := range scenario.Catalog() {
		got = append(got, item.Name)
	}
	require.ElementsMatch(t, want, got)
}

func TestTheStarterParses(t *testing.T) {
	f := parse(t, scenario.Starter())
	require.NotEmpty(t, f.Steps)
	require.NotEmpty(t, f.Load)
	require.Contains(t, scenario.Starter(), "#")
	require.True(t, strings.HasPrefix(scenario.SchemaLine, "# yaml-language-server: $schema="))
	require.FileExists(t, strings.TrimPrefix(scenario.SchemaLine, "# yaml-language-server: $schema="), "this folder is as deep as scenarios/THEME")
}
