package wlm_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/wlm"
)

func TestProfilesSetEverySwitch(t *testing.T) {
	want := map[string]string{
		wlm.ProfileReviewed:  `{"counters":"safe","missing_counters":"skip","count_failure":"keeps_rejection","principal_carrier":"context","principal_join":"escaped","acquire":"exact","publication":"leader_first","dimension_key":"attribute","rejection_text":"node_level","monitor":"rejects","nested":"charged","scroll":"free","role_choice":"first","group_header":"put_once"}`,
		wlm.ProfileSubmitted: `{"counters":"plain","missing_counters":"default_group","count_failure":"swallows_rejection","principal_carrier":"header","principal_join":"comma","acquire":"rollback","publication":"leader_first","dimension_key":"attribute","rejection_text":"node_level","monitor":"rejects","nested":"charged","scroll":"free","role_choice":"first","group_header":"put_once"}`,
		wlm.ProfileUpstream: `{"counters":"safe","missing_counters":"skip","count_failure":"keeps_rejection","principal_carrier":"context","principal_join":"unit_separator","acquire":"exact",` +
			`"publication":"manager_last","dimension_key":"by","rejection_text":"names_group","monitor":"observes","nested":"exempt","scroll":"charged","role_choice":"smallest","group_header":"keeps_outer"}`,
	}
	require.Len(t, wlm.Profiles(), len(want))
	for _, name := range wlm.Profiles() {
		s, err := wlm.Profile(name)
		require.NoError(t, err)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		require.JSONEq(t, want[name], string(text))
		_, err = wlm.New(wlm.Config{Switches: s})
		require.NoError(t, err)
	}
	_, err := wlm.Profile("upstrem")
	require.EqualError(t, err, `profile "upstrem" is unknown: one of reviewed, submitted, upstream`)
}

func TestOneSwitchIsSetAlone(t *testing.T) {
	reviewed, err := wlm.Profile(wlm.ProfileReviewed)
	require.NoError(t, err)
	for _, name := range reviewed.Names() {
		for _, value := range reviewed.Values(name) {
			changed, err := reviewed.With(name, value)
			require.NoError(t, err)
			for _, other := range reviewed.Names() {
				want := reviewed.Get(other)
				if other == name {
					want = value
				}
				require.Equal(t, want, changed.Get(other), "%s=%s, %s", name, value, other)
			}
			_, err = wlm.New(wlm.Config{Switches: changed})
			require.NoError(t, err)
		}
	}
	require.Nil(t, reviewed.Values("counter"))
	require.Empty(t, reviewed.Get("counter"))
}

func TestUnknownSwitchesAndValuesListWhatIsAllowed(t *testing.T) {
	_, err := wlm.Switches{}.With("counter", "safe")
	require.EqualError(t, err, `switch "counter" is unknown: one of counters, missing_counters, count_failure, principal_carrier, principal_join, acquire, publication, dimension_key, rejection_text, monitor, nested, scroll, role_choice, group_header`)
	_, err = wlm.Switches{}.With("acquire", "Exact")
	require.EqualError(t, err, `switch acquire cannot be "Exact": one of exact, rollback`)
}

func TestNewReportsEveryFaultAtOnce(t *testing.T) {
	_, err := wlm.New(wlm.Config{Switches: wlm.Switches{Counters: "quick", PrincipalJoin: "dot"}})
	require.EqualError(t, err, "switch counters cannot be \"quick\": one of safe, plain\nswitch principal_join cannot be \"dot\": one of escaped, comma, unit_separator")
}
