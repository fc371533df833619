package wlm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/wlm"
)

// TestTheStepsOfTwoSearches is the story that the probe tells of a new group,
// a search that gets its permit and one that does not. At every step the lock
// of the bucket is free: the hook looks at the permits.
func TestTheStepsOfTwoSearches(t *testing.T) {
	const (
		bucket   = probe.ReadBucket | probe.WriteBucket
		counters = probe.ReadMap | probe.WriteCounters
	)
	for _, row := range []struct {
		acquire string
		want    []string
	}{
		{"exact", []string{
			line(probe.MapWriteBegin, "", 0, 0, probe.WriteMap|probe.WriteCounters),
			line(probe.MapWriteEnd, "", 0, 0, probe.WriteMap),
			line(probe.AcquireBegin, "one", 0, 1, bucket),
			line(probe.Acquired, "one", 1, 1, 0),
			line(probe.AcquireBegin, "two", 0, 1, bucket),
			line(probe.Rejected, "two", 1, 1, 0),
			line(probe.MapRead, "two", 1, 1, counters),
			line(probe.Counted, "two", 1, 1, 0),
		}},
		{"rollback", []string{
			line(probe.MapWriteBegin, "", 0, 0, probe.WriteMap|probe.WriteCounters),
			line(probe.MapWriteEnd, "", 0, 0, probe.WriteMap),
			line(probe.AcquireBegin, "one", 0, 1, bucket),
			line(probe.AcquireLook, "one", 0, 1, bucket),
			line(probe.Acquired, "one", 1, 1, 0),
			line(probe.AcquireBegin, "two", 0, 1, bucket),
			line(probe.AcquireLook, "two", 0, 1, bucket),
			line(probe.AcquireRollback, "two", 1, 1, probe.WriteBucket),
			line(probe.Rejected, "two", 1, 1, 0),
			line(probe.MapRead, "two", 1, 1, counters),
			line(probe.Counted, "two", 1, 1, 0),
		}},
	} {
		t.Run(row.acquire, func(t *testing.T) {
			var th *wlm.Throttle
			var got []string
			buckets := map[uint64]bool{}
			steps := probe.New("n1", probe.HookFunc(func(e probe.Event) {
				if th != nil {
					th.Permits()
				}
				require.Equal(t, "g", e.Group)
				if e.Bucket != 0 {
					buckets[e.Bucket] = true
				}
				got = append(got, line(e.Step, e.Search, e.Held, e.Limit, e.Touches))
			}))
			s := enabled(t, group("g", cluster.ByUsername, 1))
			var err error
			th, err = wlm.New(wlm.Config{Switches: with(t, "acquire", row.acquire), Probe: steps})
			require.NoError(t, err)
			require.NoError(t, th.ApplySettings(cluster.Empty(), s))
			require.NoError(t, th.ClusterChanged(cluster.Empty(), s))
			var p wlm.Permit
			require.NoError(t, th.Admit(user("alice"), s, "g", "one", &p))
			require.Error(t, th.Admit(user("alice"), s, "g", "two", new(wlm.Permit)))
			require.Equal(t, row.want, got, "%s", strings.Join(got, "\n"))
			require.Equal(t, map[uint64]bool{p.Bucket(): true}, buckets)
		})
	}
}

func line(step probe.Step, search string, held, limit int, touches probe.Touch) string {
	return fmt.Sprintf("%s %q %d of %d, touches %d", step, search, held, limit, touches)
}

// TestTheHashOfABucketFollowsTheSeed: the same seed names it the same in every
// run, another one otherwise.
func TestTheHashOfABucketFollowsTheSeed(t *testing.T) {
	s := enabled(t, group("g", cluster.ByUsername, 1))
	hash := func(seed uint64) uint64 {
		th := throttle(t, wlm.Config{Seed: seed}, s)
		var p wlm.Permit
		require.NoError(t, th.Admit(user("alice"), s, "g", "", &p))
		return p.Bucket()
	}
	require.Equal(t, hash(7), hash(7))
	require.NotEqual(t, hash(7), hash(8))

	th, err := wlm.New(wlm.Config{Seed: 7})
	require.NoError(t, err)
	var byUser, byRole wlm.Permit
	require.True(t, th.Acquire("g", cluster.ByUsername, "alice", 1, &byUser))
	require.True(t, th.Acquire("g", cluster.ByRole, "alice", 1, &byRole))
	require.NotEqual(t, byUser.Bucket(), byRole.Bucket())
}

// TestHashesSpread: of many likely keys few share a shard's slot; a broken hash
// would put them into a handful.
func TestHashesSpread(t *testing.T) {
	seen := map[uint64]int{}
	th, err := wlm.New(wlm.Config{})
	require.NoError(t, err)
	const keys = 64 * 256
	for i := range keys {
		var p wlm.Permit
		require.True(t, th.Acquire("b3gTYeQ0R1qXvJ8yKZ0cDA", cluster.ByUsername, fmt.Sprint("u", i), 1, &p))
		seen[p.Bucket()%(64*64)]++
	}
	require.Greater(t, len(seen), 64*64*97/100, "4 keys a slot leave 2 of 100 slots empty")
	for slot, n := range seen {
		require.Less(t, n, 24, "slot %d", slot)
	}
}

func ExampleThrottle_Admit() {
	limit := int64(1)
	mode := string(cluster.Enabled)
	state := cluster.Empty()
	for _, c := range []cluster.Command{
		&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &mode}}},
		&cluster.CreateGroup{Group: cluster.Group{ID: "analytics", Name: "analytics", ResiliencyMode: cluster.Enforced,
			ResourceLimits: map[string]float64{"cpu": 0.3}, Throttling: &cluster.Throttling{Attribute: cluster.ByUsername, NodeLimit: &limit}}},
	} {
		state, _ = cluster.Apply(state, c)
	}
	throttle, _ := wlm.New(wlm.Config{})
	_ = throttle.ApplySettings(cluster.Empty(), state)
	_ = throttle.ClusterChanged(cluster.Empty(), state)

	alice := wlm.WithPrincipal(context.Background(), wlm.Principal{User: "alice"})
	var first, second wlm.Permit
	fmt.Println(throttle.Admit(alice, state, "analytics", "first", &first), first.Held())
	fmt.Println(throttle.Admit(alice, state, "analytics", "second", &second), second.Held())
	fmt.Println(first.Release(), first.Release())
	fmt.Println(throttle.Admit(alice, state, "analytics", "third", &second), second.Held())
	// Output:
	// <nil> true
	// Node-level workload group throttle limit reached: 1 concurrent in-flight requests false
	// true false
	// <nil> true
}
