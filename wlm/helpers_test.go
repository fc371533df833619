package wlm_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/wlm"
)

// times returns the full count under WLMSIM_SOAK=1, and the reduced one
// otherwise.
func times(full, reduced int) int {
	if os.Getenv("WLMSIM_SOAK") == "1" {
		return full
	}
	return reduced
}

// group returns a sound group whose id is its name.
func group(name string, by cluster.Attribute, limit int64) cluster.Group {
	return cluster.Group{
		ID: name, Name: name, ResiliencyMode: cluster.Enforced,
		ResourceLimits: map[string]float64{"cpu": 0.001},
		Throttling:     &cluster.Throttling{Attribute: by, NodeLimit: &limit},
	}
}

// of returns the switches of a profile.
func of(t testing.TB, profile string) wlm.Switches {
	t.Helper()
	s, err := wlm.Profile(profile)
	require.NoError(t, err)
	return s
}

// written returns a state of enabled whose groups' throttling has the form of
// the switches.
func written(t testing.TB, s wlm.Switches, groups ...cluster.Group) *cluster.State {
	t.Helper()
	for i := range groups {
		groups[i].Throttling = s.DimensionKey.Write(groups[i].Throttling)
	}
	return enabled(t, groups...)
}

func setMode(mode cluster.Mode) cluster.Command {
	text := string(mode)
	return &cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &text}}}
}

func apply(t testing.TB, s *cluster.State, commands ...cluster.Command) *cluster.State {
	t.Helper()
	for _, c := range commands {
		next, err := cluster.Apply(s, c)
		require.NoError(t, err)
		s = next
	}
	return s
}

// enabled returns a state in mode enabled with these groups.
func enabled(t testing.TB, groups ...cluster.Group) *cluster.State {
	t.Helper()
	s := apply(t, cluster.Empty(), setMode(cluster.Enabled))
	for _, g := range groups {
		s = apply(t, s, &cluster.CreateGroup{Group: g})
	}
	return s
}

// throttle returns a Throttle that was told of s.
func throttle(t testing.TB, c wlm.Config, s *cluster.State) *wlm.Throttle {
	t.Helper()
	th, err := wlm.New(c)
	require.NoError(t, err)
	require.NoError(t, th.ApplySettings(cluster.Empty(), s))
	require.NoError(t, th.ClusterChanged(cluster.Empty(), s))
	return th
}

func user(name string) context.Context {
	return wlm.WithPrincipal(context.Background(), wlm.Principal{User: name})
}

func roles(names ...string) context.Context {
	return wlm.WithPrincipal(context.Background(), wlm.Principal{Roles: names})
}

// admit runs one search to its admission: "permit", "no permit" or "429".
func admit(t testing.TB, th *wlm.Throttle, ctx context.Context, s *cluster.State, id string) (string, *wlm.Permit) {
	t.Helper()
	p := new(wlm.Permit)
	err := th.Admit(ctx, s, id, "search", p)
	if err != nil {
		rejection, ok := errors.AsType[*wlm.Rejection](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, id, rejection.Group)
		require.False(t, p.Held())
		return "429", p
	}
	if p.Held() {
		return "permit", p
	}
	return "no permit", p
}

// stats returns one group's counters.
func stats(t testing.TB, th *wlm.Throttle, id string) wlm.GroupStats {
	t.Helper()
	all, err := th.Stats([]string{id})
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

func with(t testing.TB, settings ...string) wlm.Switches {
	t.Helper()
	s, err := wlm.Profile(wlm.ProfileReviewed)
	require.NoError(t, err)
	for i := 0; i < len(settings); i += 2 {
		s, err = s.With(settings[i], settings[i+1])
		require.NoError(t, err)
	}
	return s
}

// inState returns a state that holds groups which no writer may store, as a
// snapshot of an older program could.
func inState(t testing.TB, groups ...cluster.Group) *cluster.State {
	t.Helper()
	s := apply(t, cluster.Empty(), setMode(cluster.Enabled))
	for _, g := range groups {
		s = apply(t, s, &cluster.CreateGroup{Group: g}) // Apply is lenient, Validate is not
	}
	return s
}
