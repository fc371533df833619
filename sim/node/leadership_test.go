package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/sim/node"
)

// Case C22: from the first moment after a restart a node shows all groups and
// holds their limits, or says that it has not caught up.
func TestARestartedNodeShowsAllGroupsOrNone(t *testing.T) {
	const groups, chosen = 90, 70
	var mu sync.Mutex
	first := map[string]uint64{} // version that a node published first since the restart
	inLab(t, "m1 m2 m3", func(c *node.Config) {
		c.Timings.SnapshotThreshold, c.Timings.TrailingLogs = 45, 4
		name := c.Name
		c.Hooks = append(c.Hooks, probe.HookFunc(func(e probe.Event) {
			if e.Step != probe.ApplierPublished || e.Version == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if first[name] == 0 {
				first[name] = e.Version
			}
		}))
	}, func(l *lab) {
		l.index(3)
		limited := ""
		for i := 1; i <= groups; i++ {
			id := l.group("m1", fmt.Sprintf("group-%02d", i), cluster.ByGroup, 1)
			if i == chosen {
				limited = id
			}
		}
		for _, name := range l.names {
			l.crash(name)
		}
		mu.Lock()
		first = map[string]uint64{}
		mu.Unlock()
		c := l.client()
		defer c.transport.CloseIdleConnections()
		ends := map[string]func(){}
		refusals, lists := map[string]int{}, map[string]int{}
		look := func(name string) {
			for _, page := range []string{"/_wlm/workload_group", "/_wlm/workload_group?local=true"} {
				status, body := c.ask(l.t.Context(), name, http.MethodGet, page, "", "", "")
				if status == http.StatusServiceUnavailable {
					continue
				}
				require.Equal(l.t, http.StatusOK, status, body)
				var list struct {
					Groups []json.RawMessage `json:"workload_groups"`
				}
				require.NoError(l.t, json.Unmarshal([]byte(body), &list))
				require.Len(l.t, list.Groups, groups, "%s%s", name, page)
				lists[name+page]++
			}
			if ends[name] != nil {
				require.True(l.t, throttled(l.search(l.t.Context(), name, "bob", limited, 0).err), name)
				refusals[name]++
				return
			}
			leave, done := l.hold(name, "alice", limited)
			if l.held(name, limited) == 1 {
				ends[name] = func() { leave(); <-done }
				return
			}
			leave()
			require.Equal(l.t, cluster.ClusterBlock, cluster.KindOf((<-done).err), "%s has not caught up and says so", name)
		}
		for _, name := range l.names {
			l.start(name)
			look(name)
		}
		for range 500 {
			for _, name := range l.names {
				look(name)
			}
			time.Sleep(20 * time.Millisecond)
		}
		for _, name := range l.names {
			require.Greater(l.t, refusals[name], 100, name)
			require.Greater(l.t, lists[name+"/_wlm/workload_group"], 100, name)
			require.Greater(l.t, lists[name+"/_wlm/workload_group?local=true"], 100, name)
			require.Greater(l.t, first[name], uint64(40), "%s began with its snapshot", name)
			ends[name]()
		}
		l.requireNoPermit()
	})
}

// Case C23: a leadership that moves every 100 ms while who takes over needs
// 500 ms for each entry, of which the barrier is one.
func TestLeadershipThatFlapsFasterThanItsHandler(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		l.leader()
		for _, name := range l.names {
			l.stores[name].SetFault(func(op replica.Op) error {
				if op.Kind == replica.OpStoreLogs {
					time.Sleep(500 * time.Millisecond)
				}
				return nil
			})
		}
		var transfers sync.WaitGroup
		moved := map[string]bool{}
		for range 50 {
			for _, name := range l.names {
				if _, leads := l.nodes[name].Leading(); leads {
					moved[name] = true
					transfers.Go(func() { _ = l.nodes[name].TransferLeadership(l.t.Context(), "") })
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, name := range l.names {
			l.stores[name].SetFault(nil)
		}
		transfers.Wait()
		require.Greater(l.t, len(moved), 1, "the leadership moved")

		began := time.Now()
		l.mustPropose("m1", newGroup(l.nodes["m1"].NewID(), "next", cluster.ByGroup, 1))
		require.Less(l.t, time.Since(began), time.Second, "the election time-out")
		named := l.leader()
		for _, name := range l.names {
			_, leads := l.nodes[name].Leading()
			require.Equal(l.t, name == named, leads, "%s leads, and raft names %s", name, named)
		}
	})
}
