package scenario_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

func TestOneStepMoreIsCheckedAsPartOfTheFile(t *testing.T) {
	f, err := scenario.Parse("f.yaml", []byte("version: 1\nname: x\nsteps:\n  - {at: 1s, search: {id: one}}\n"))
	require.NoError(t, err)
	second := scenario.Duration(2 * time.Second)

	g, err := f.Then(second, "put_group: {id: put, name: late, resource_limits: {cpu: 0.5}, resiliency_mode: soft}")
	require.NoError(t, err)
	require.Equal(t, second, g.Steps[1].At)
	require.Equal(t, "late", g.Steps[1].PutGroup.Name)
	require.Len(t, f.Steps, 1, "the file itself stays")

	g, err = g.Then(second, "search: {id: two, group: late}")
	require.NoError(t, err, "an earlier step's group is known")
	_, err = g.Then(second, "cancel: {search: one}")
	require.NoError(t, err, "the file's own search is known")

	for text, want := range map[string]string{
		"search: {id: one}":                 `id "one" is used twice`,
		"search: {group: lte}":              `step:1:17: unknown group "lte"`,
		"search: {grup: late}":              `step:1:10: unknown key "grup"`,
		"release: {node: m1, step: x}":      "step:1:27",
		"search: {}\ncancel: {search: one}": "2 actions in one step",
		"search: {":                         "step:1",
		"crash: {node: m9}":                 `unknown node "m9"`,
		"{search: {id: two}, hold: null}":   `id "two" is used twice`,
	} {
		_, err := g.Then(second, text)
		require.ErrorContains(t, err, want, text)
	}
}
