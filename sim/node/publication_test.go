package node_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/wlm"
)

func publishing(p wlm.Publication) func(*node.Config) {
	return func(c *node.Config) { c.Switches.Publication = p }
}

// put sends a new group through a node and returns where its answer comes.
func (l *lab) put(name, group string, limit int64) <-chan putAnswer {
	answers := make(chan putAnswer, 1)
	began := time.Now()
	n := l.nodes[name]
	go func() {
		id := fmt.Sprintf("%-22s", group)
		r, err := n.Propose(l.t.Context(), newGroup(id, group, cluster.ByGroup, limit))
		answers <- putAnswer{err == nil && r.Acknowledged, err, time.Since(began)}
	}()
	return answers
}

type putAnswer struct {
	acknowledged bool
	err          error
	after        time.Duration
}

// knows says whether a node has published a group.
func (l *lab) knows(name, group string) bool { return l.nodes[name].State().GroupNamed(group) != nil }

// others returns the followers, the first of them to be stuck.
func (l *lab) others() (leader, stuck, free string) {
	leader, stuck = l.leader(), l.follower()
	for _, name := range l.names {
		if name != leader && name != stuck {
			free = name
		}
	}
	return leader, stuck, free
}

// Promise 1, for each publication: while a follower is stuck the coordinators
// disagree, and who is behind depends on the switch.
func TestWhoIsBehindWhileAFollowerIsStuck(t *testing.T) {
	for _, publication := range []wlm.Publication{wlm.PublicationLeaderFirst, wlm.PublicationManagerLast} {
		t.Run(string(publication), func(t *testing.T) {
			inLab(t, "m1 m2 m3", publishing(publication), func(l *lab) {
				leader, stuck, free := l.others()
				l.holdStep(stuck, probe.ApplierNotify, probe.Filter{Listener: "wlm"}) // the planted listener
				answer := l.put(free, "late", 1)
				time.Sleep(29 * time.Second)
				synctest.Wait()
				require.Empty(t, answer, "the PUT waits for the listener")
				require.True(t, l.knows(free, "late"))
				require.True(t, l.knows(stuck, "late"), "published there: it is a listener that hangs")
				require.Equal(t, publication == wlm.PublicationLeaderFirst, l.knows(leader, "late"))

				a := <-answer
				require.NoError(t, a.err)
				require.False(t, a.acknowledged)
				require.Equal(t, 30*time.Second, a.after.Truncate(time.Second))
				require.True(t, l.knows(leader, "late"), "the answer comes after the leader has applied")
				require.Equal(t, l.nodes[free].Applied(), l.nodes[leader].Applied())
			})
		})
	}
}

// Promise 1: without a fault the leader is the last to publish, and the answer
// is an acknowledged success.
func TestTheManagerAppliesLast(t *testing.T) {
	var mu sync.Mutex
	orders := map[uint64][]string{} // of publishing, by version
	inLab(t, "m1 m2 m3", func(c *node.Config) {
		c.Switches.Publication = wlm.PublicationManagerLast
		name := c.Name
		c.Hooks = append(c.Hooks, probe.HookFunc(func(e probe.Event) {
			if e.Step == probe.ApplierPublished {
				mu.Lock()
				defer mu.Unlock()
				orders[e.Version] = append(orders[e.Version], name)
			}
		}))
	}, func(l *lab) {
		leader := l.leader()
		for _, group := range []string{"one", "two", "three"} {
			r := l.mustPropose(l.follower(), newGroup(l.nodes[leader].NewID(), group, cluster.ByGroup, 1))
			require.True(t, r.Acknowledged)
			mu.Lock()
			order := orders[r.Version]
			mu.Unlock()
			require.Len(t, order, 3)
			require.Equal(t, leader, order[2], "%v", order)
		}
	})
}

// Promise 1: each way in which the wait of a leader ends early.
func TestWhatEndsTheManagersWait(t *testing.T) {
	for _, row := range []struct {
		name   string
		ends   func(l *lab, leader, stuck string)
		within time.Duration
		// what the client of the PUT, sent to the third node, then hears
		acknowledged bool
		err          cluster.Kind
	}{
		{"the stuck node dies", func(l *lab, _, stuck string) { l.crash(stuck) }, 10 * time.Second, true, ""},
		{"the stuck node goes on", func(l *lab, _, stuck string) {
			l.nodes[stuck].Holds().Release(probe.ApplierReceived)
		}, time.Second, true, ""},
		{"the leader hands the lead over", func(l *lab, leader, _ string) {
			require.NoError(l.t, l.nodes[leader].TransferLeadership(l.t.Context(), ""))
		}, time.Second, false, cluster.OutcomeUnknown},
		{"the leader is cut off", func(l *lab, leader, _ string) {
			_, err := l.net.Partition([]string{leader}, slices.DeleteFunc(slices.Clone(l.names), func(n string) bool { return n == leader }))
			require.NoError(l.t, err)
		}, 5 * time.Second, false, cluster.OutcomeUnknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			inLab(t, "m1 m2 m3", publishing(wlm.PublicationManagerLast), func(l *lab) {
				leader, stuck, free := l.others()
				l.holdStep(stuck, probe.ApplierReceived, probe.Filter{})
				answer := l.put(free, "late", 1)
				time.Sleep(time.Second)
				synctest.Wait()
				require.Empty(t, answer)
				require.False(t, l.knows(leader, "late"))
				require.True(t, l.knows(free, "late"))

				began := time.Now()
				row.ends(l, leader, stuck)
				for !l.knows(leader, "late") && time.Since(began) < patience {
					time.Sleep(10 * time.Millisecond)
				}
				require.Less(t, time.Since(began), row.within)
				a := <-answer
				require.Equal(t, row.acknowledged, a.acknowledged)
				require.Equal(t, row.err, cluster.KindOf(a.err), "%v", a.err)
				if n := l.nodes[stuck]; n != nil {
					n.Holds().Release(probe.ApplierReceived)
				}
			})
		})
	}
}

// Versions are timed from when raft handed them over: a stuck member delays
// many of them no longer than one.
func TestAStuckMemberDelaysManyVersionsAsLongAsOne(t *testing.T) {
	inLab(t, "m1 m2 m3", publishing(wlm.PublicationManagerLast), func(l *lab) {
		leader, stuck, free := l.others()
		l.holdStep(stuck, probe.ApplierReceived, probe.Filter{})
		var answers []<-chan putAnswer
		for i := range 5 {
			answers = append(answers, l.put(free, fmt.Sprint("late-", i), 1))
			time.Sleep(time.Second)
		}
		for i, answer := range answers {
			a := <-answer
			require.NoError(t, a.err)
			require.False(t, a.acknowledged)
			require.Equal(t, 30*time.Second, a.after.Truncate(time.Second))
			require.True(t, l.knows(leader, fmt.Sprint("late-", i)))
			require.False(t, l.knows(leader, fmt.Sprint("late-", i+1)))
		}
	})
}

// A leader that closes does not wait for those it holds a version back for.
func TestALeaderClosesWhileItHoldsAVersionBack(t *testing.T) {
	inLab(t, "m1 m2 m3", publishing(wlm.PublicationManagerLast), func(l *lab) {
		leader, stuck, free := l.others()
		l.holdStep(stuck, probe.ApplierReceived, probe.Filter{})
		answer := l.put(free, "late", 1)
		time.Sleep(time.Second)
		began := time.Now()
		l.stop(leader)
		require.Less(t, time.Since(began), time.Second)
		require.Equal(t, cluster.OutcomeUnknown, cluster.KindOf((<-answer).err))
	})
}
