package replica_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
)

// stores names both kinds of store, to run a test on each.
func stores(t *testing.T) map[string]func(string) *replica.Store {
	return map[string]func(string) *replica.Store{
		"memory": memory,
		"bolt":   func(string) *replica.Store { return replica.Bolt(t.TempDir()) },
	}
}

// versions returns the versions of states.
func versions(states []*cluster.State) []uint64 {
	var v []uint64
	for _, s := range states {
		v = append(v, s.Version())
	}
	return v
}

// upTo returns 1 to n.
func upTo(n int) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = uint64(i + 1)
	}
	return v
}

func TestThreeVotersOverLoopbackDeliverTheSameStatesInOrder(t *testing.T) {
	// On the wall clock a busy machine must not depose a leader, nor have three
	// voters campaign at once: the first one leads alone, and gives the others
	// their votes.
	patient := withTimings(replica.Timings{Heartbeat: time.Minute, Election: time.Minute, Lease: time.Minute, Request: time.Minute})
	c := newCluster(t, nil, 3, stores(t)["bolt"], patient)
	defer c.close()
	first := c.nodes["m1"]
	first.open(c.servers[:1])
	c.leader()
	for _, s := range c.servers[1:] {
		c.nodes[s.Name].open(nil)
		require.NoError(t, first.AddVoter(t.Context(), s.Name, s.Address))
	}
	for i := range 10 {
		_, s := c.propose(create(fmt.Sprint("g", i)))
		require.Equal(t, uint64(i+1), s.Version())
	}
	for _, name := range c.names {
		c.nodes[name].version(10)
		require.Equal(t, upTo(10), versions(c.nodes[name].states()))
		require.Equal(t, text(t, c.nodes["m1"].State()), text(t, c.nodes[name].State()))
		require.True(t, slices.IsSorted(c.nodes[name].indices))
	}
}

func TestTimePassesInABubbleAndALeaderIsThereAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		require.Equal(t, "m1", led.name, "the first voter by name leads a new cluster")
		require.Less(t, time.Since(start), 20*time.Millisecond)
		_, _, term := led.Leader()
		time.Sleep(10 * time.Minute)
		_, s := c.propose(create("late"))
		require.Equal(t, uint64(1), s.Version())
		_, _, after := c.leader().Leader()
		require.Equal(t, term, after, "nobody was elected meanwhile")
	})
}

func TestAWholeClusterThatRestartsHasItsStateAndALeaderAtOnce(t *testing.T) {
	for kind, store := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, newMemnet(), 3, store)
				c.open()
				defer c.close()
				for i := range 5 {
					c.propose(create(fmt.Sprint("g", i)))
				}
				before := text(t, c.leader().State())
				for range 3 {
					c.close()
					start := time.Now()
					for _, name := range c.names {
						c.nodes[name].restart()
					}
					c.leader()
					require.Less(t, time.Since(start), 50*time.Millisecond)
					for _, name := range c.names {
						require.Equal(t, before, text(t, c.nodes[name].version(5)))
						require.Equal(t, upTo(5), versions(c.nodes[name].states()), "replayed in order")
					}
				}
			})
		})
	}
}

func TestProposeAnswersOnTheLeaderOnlyAndRefusesWithoutAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		_, err := c.others(led)[0].Propose(t.Context(), create("a"))
		var elsewhere *replica.NotLeaderError
		require.ErrorAs(t, err, &elsewhere)
		require.Equal(t, replica.NotLeaderError{Name: led.name, Address: led.address}, *elsewhere)

		_, err = led.Propose(t.Context(), &cluster.CreateGroup{})
		require.Equal(t, cluster.NullPointer, cluster.KindOf(err), "Validate is asked again")

		_, err = led.Propose(t.Context(), create("a"))
		require.NoError(t, err)
		_, err = led.Propose(t.Context(), create("a"))
		require.Equal(t, cluster.IllegalArgument, cluster.KindOf(err))
		require.NotErrorIs(t, err, replica.ErrOutcomeUnknown)
		s, err := led.Propose(t.Context(), create("b"))
		require.NoError(t, err)
		require.Equal(t, uint64(2), s.Version(), "the refused command made none")
		for _, name := range c.names {
			c.nodes[name].version(2)
			require.Equal(t, upTo(2), versions(c.nodes[name].states()))
		}
	})
}

func TestConcurrentProposalsEachGetTheStateTheyMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		type answer struct {
			name string
			s    *cluster.State
			err  error
		}
		answers := make(chan answer)
		for i := range 50 {
			go func() {
				name := fmt.Sprintf("g%02d", i)
				s, err := led.Propose(t.Context(), create(name))
				answers <- answer{name, s, err}
			}()
		}
		seen := map[uint64]bool{}
		for range 50 {
			a := <-answers
			require.NoError(t, a.err)
			require.NotNil(t, a.s.GroupNamed(a.name))
			require.Len(t, a.s.Groups(), int(a.s.Version()))
			require.False(t, seen[a.s.Version()])
			seen[a.s.Version()] = true
		}
	})
}

func TestFollowersHearOfAChangeWithoutWaitingForTheCommitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory, withTimings(replica.Timings{Commit: 10 * time.Second}))
		c.open()
		defer c.close()
		c.leader()
		time.Sleep(time.Second)
		start := time.Now()
		c.propose(create("a"))
		for _, name := range c.names {
			c.nodes[name].version(1)
		}
		require.Less(t, time.Since(start), time.Millisecond)
	})
}

func TestARestartedClusterKnowsItsStateWithoutWaitingForTheCommitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory, withTimings(replica.Timings{Commit: 10 * time.Second}))
		c.open()
		defer c.close()
		for i := range 5 {
			c.propose(create(fmt.Sprint("g", i)))
		}
		time.Sleep(time.Second)
		c.close()
		start := time.Now()
		for _, name := range c.names {
			c.nodes[name].restart()
		}
		for _, name := range c.names {
			c.nodes[name].version(5)
		}
		require.Less(t, time.Since(start), 50*time.Millisecond)
	})
}

func TestAppliedFollowsCommittedOverEntriesWithoutACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory, withTimings(replica.Timings{SnapshotThreshold: 20, TrailingLogs: 1}))
		c.open()
		defer c.close()
		for i := range 30 {
			c.propose(create(fmt.Sprint("g", i)))
			if i%10 == 0 {
				require.NoError(t, c.leader().TransferLeadership(t.Context()))
			}
			time.Sleep(time.Second)
			for _, name := range c.names {
				n := c.nodes[name]
				require.Equal(t, n.CommitIndex(), n.AppliedIndex())
				require.Equal(t, c.leader().CommitIndex(), n.CommitIndex())
			}
		}
	})
}

func TestAHeldProposalHasNotReachedRaft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 1, memory)
		holds := &probe.Holds{}
		require.NoError(t, holds.Hold(probe.ClusterProposed, probe.Filter{Group: "id-a"}))
		n := c.nodes["m1"]
		conf := n.config(c.servers)
		conf.Probe = probe.New("m1", holds)
		r, err := replica.Open(conf)
		require.NoError(t, err)
		n.Replica = r
		defer c.close()
		c.leader()
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error)
		go func() { _, err := n.Propose(ctx, create("a")); answer <- err }()
		synctest.Wait()
		commit := n.CommitIndex()
		cancel()
		holds.Close()
		err = <-answer
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, replica.ErrOutcomeUnknown)
		time.Sleep(time.Second)
		require.Equal(t, commit, n.CommitIndex())
		require.Zero(t, n.State().Version())
	})
}

func TestALeaderThatIsCutOffMidProposalSaysThatTheOutcomeIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		c.propose(create("a"))
		c.network.isolate(led.name, true)
		start := time.Now()
		_, err := led.Propose(t.Context(), create("lost"))
		require.ErrorIs(t, err, replica.ErrOutcomeUnknown)
		require.Less(t, time.Since(start), 2*time.Second, "when its lease is over, not later")
		rest := c.others(led)
		next := c.leader(rest[0].name, rest[1].name)
		_, err = next.Propose(t.Context(), create("b"))
		require.NoError(t, err)
		c.network.isolate(led.name, false)
		require.Equal(t, text(t, next.State()), text(t, led.version(2)), "the lost entry gave way")
		require.Equal(t, upTo(2), versions(led.states()))
	})
}

func TestACallerThatGivesUpIsToldThatTheOutcomeIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		c.network.isolate(led.name, true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := led.Propose(ctx, create("a"))
		require.ErrorIs(t, err, replica.ErrOutcomeUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestALeaderThatClosesAnswersWhatItHasInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		for _, other := range c.others(led) {
			c.network.isolate(other.name, true)
		}
		answers := make(chan error, 100)
		for i := range 20 {
			go func() { _, err := led.Propose(t.Context(), create(fmt.Sprint("g", i))); answers <- err }()
			go func() { answers <- led.VerifyLeader(t.Context()) }()
		}
		synctest.Wait()
		start := time.Now()
		require.NoError(t, led.Close())
		require.Less(t, time.Since(start), 100*time.Millisecond, "no time-out is waited for")
		for range 40 {
			require.Error(t, <-answers)
		}
		_, err := led.Propose(t.Context(), create("late"))
		require.Error(t, err)
		require.ErrorIs(t, led.VerifyLeader(t.Context()), replica.ErrClosed)
		require.NoError(t, led.Close(), "closing again")
	})
}

func TestClosingUnderLoadLeavesNobodyWaiting(t *testing.T) {
	for range count(200, 20) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, newMemnet(), 3, memory)
			c.open()
			led := c.leader()
			answers := make(chan error, 100)
			for i := range 20 {
				go func() {
					for j := range 5 {
						_, err := led.Propose(t.Context(), create(fmt.Sprintf("g%d-%d", i, j)))
						answers <- err
					}
				}()
			}
			for range 30 {
				<-answers
			}
			require.NoError(t, led.Close())
			for range 70 {
				err := <-answers
				if moved := (*replica.NotLeaderError)(nil); err != nil && !errors.As(err, &moved) &&
					!errors.Is(err, replica.ErrOutcomeUnknown) && !errors.Is(err, replica.ErrClosed) {
					require.NoError(t, err)
				}
			}
			c.close()
		})
	}
}

func TestVerifyLeaderCoversWhatAnEarlierLeaderAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		for i := range count(50, 10) {
			led, s := c.propose(create(fmt.Sprint("g", i)))
			led.store.Freeze()
			led.shut()
			next := c.leader()
			require.NoError(t, next.VerifyLeader(t.Context()))
			require.GreaterOrEqual(t, next.State().Version(), s.Version())
			time.Sleep(time.Second) // for the barriers behind it
			require.Equal(t, next.CommitIndex(), next.AppliedIndex())
			led.restart()
			led.version(s.Version())
		}
	})
}

func TestVerifyLeaderFailsOnAFollowerAndOnALeaderThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		var moved *replica.NotLeaderError
		require.ErrorAs(t, c.others(led)[0].VerifyLeader(t.Context()), &moved)
		require.NoError(t, led.VerifyLeader(t.Context()))
		c.network.isolate(led.name, true)
		require.Error(t, led.VerifyLeader(t.Context()))
	})
}

func TestOpenReportsEveryFaultOfItsConfig(t *testing.T) {
	_, err := replica.Open(replica.Config{
		Bootstrap: []replica.Server{{Name: "a", Address: "x"}, {Name: "a", Address: "y"}, {Name: "b"}},
		Timings:   replica.Timings{Heartbeat: time.Millisecond, Lease: time.Hour, Commit: 1, Request: -1, SnapshotInterval: 1},
	})
	for _, part := range []string{
		"name is empty", "address is empty", "listener is missing", "dial is missing", "store is missing", "deliver is missing",
		"heartbeat 1ms is below 5ms", "lease 1h0m0s is above the heartbeat, 1ms", "commit 1ns", "request -1ns", "snapshot interval 1ns",
		"a at y is named twice", `"b" at "" lacks`, "3 servers but no voter",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestAStoreServesOneReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 1, memory)
		c.open()
		defer c.close()
		n := c.add("other", c.nodes["m1"].store)
		_, err := replica.Open(n.config(nil))
		require.ErrorIs(t, err, replica.ErrInUse)
		require.ErrorIs(t, n.store.Lost(), replica.ErrInUse)
	})
}
