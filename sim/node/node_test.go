package node_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/wlm"
)

// The whole of a cluster in virtual time: a group is made through a data node,
// known everywhere when the answer comes, and enforced on each node alone.
func TestAGroupIsEnforcedOnEveryNodeWhenItsPutIsAnswered(t *testing.T) {
	inLab(t, "m1 m2 m3 d1 d2", nil, func(l *lab) {
		l.index(4)
		g := l.group("d1", "analytics", cluster.ByUsername, 1)
		for _, name := range l.names {
			require.NotNil(l.t, l.nodes[name].State().Group(g), name)
			cancel, done := l.hold(name, "alice", g)
			require.Equal(l.t, 1, l.held(name, g))
			require.True(l.t, throttled(l.search(l.t.Context(), name, "alice", g, 0).err), name)
			require.NoError(l.t, l.search(l.t.Context(), name, "bob", g, 0).err, name)
			require.EqualValues(l.t, 1, l.throttledCount(name, g))
			cancel()
			require.ErrorIs(l.t, (<-done).err, context.Canceled)
		}
		l.requireNoPermit()
	})
}

// Promise 1: the answer waits for every live member, and no longer than the
// publish timeout; then it is a success that was not acknowledged.
func TestAPutWaitsForEveryLiveMember(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		slow := l.follower()
		l.holdStep(slow, probe.ApplierPublished, probe.Filter{})
		began := time.Now()
		r := l.mustPropose(l.leader(), newGroup("held0000000000000000a", "held", cluster.ByGroup, 1))
		require.False(l.t, r.Acknowledged)
		require.Equal(l.t, 30*time.Second, time.Since(began).Truncate(time.Second))
		require.NotNil(l.t, l.nodes[slow].State().Group(r.Group.ID), "it is published there, its listeners have not heard of it")
		l.nodes[slow].Holds().Release(probe.ApplierPublished)

		began = time.Now()
		r = l.mustPropose(l.leader(), newGroup("after000000000000000a", "after", cluster.ByGroup, 1))
		require.True(l.t, r.Acknowledged)
		require.Less(l.t, time.Since(began), time.Second)
	})
}

// Promise 1: a member that dies ends the wait for it.
func TestAPutDoesNotWaitForTheDead(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		victim := l.follower()
		l.holdStep(victim, probe.ApplierPublished, probe.Filter{})
		done := make(chan bool, 1)
		leader := l.leader()
		go func() {
			r, err := l.propose(leader, newGroup("wait0000000000000000a", "wait", cluster.ByGroup, 1))
			done <- err == nil && r.Acknowledged
		}()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Empty(l.t, done, "the answer waits for %s", victim)
		l.crash(victim)
		began := time.Now()
		require.True(l.t, <-done)
		require.Less(l.t, time.Since(began), 10*time.Second)
	})
}

// A node that is not given all it needs says so at once, closes what it was
// handed to listen on, and tells of nothing but the cause.
func TestANodeThatDoesNotStartClosesItsListeners(t *testing.T) {
	for name, fault := range map[string]struct {
		change func(*node.Config)
		want   string
	}{
		"a role":   {func(c *node.Config) { c.Roles = []cluster.Role{"cook"} }, `node "m2": role "cook" is unknown: one of cluster_manager, data`},
		"a name":   {func(c *node.Config) { c.Name = "a/b" }, `start node a/b: gossip: name "a/b" contains`},
		"a user":   {func(c *node.Config) { c.REST.Users = map[string]rest.User{"alice": {}} }, `user "alice" has no bcrypt hash`},
		"a timing": {func(c *node.Config) { c.Timings.Heartbeat = 1 }, "start node m2: "},
	} {
		t.Run(name, func(t *testing.T) {
			var given node.Config
			inLab(t, "m1", nil, func(l *lab) {
				l.tune = func(c *node.Config) { fault.change(c); given = *c }
				_, err := node.Start(l.config("m2"))
				require.ErrorContains(l.t, err, fault.want)
				require.NotContains(l.t, err.Error(), net.ErrClosed.Error())
				for _, listener := range []net.Listener{given.HTTP.Listener, given.Raft.Listener, given.Gossip.Network.Listener} {
					_, err := listener.Accept()
					require.ErrorIs(l.t, err, net.ErrClosed)
				}
				_, _, err = given.Gossip.Network.Packets.ReadFrom(make([]byte, 1))
				require.ErrorIs(l.t, err, net.ErrClosed)
			})
		})
	}
}

// A node that is told to join where nobody is says so once, and tries on.
func TestANodeThatFindsNoMemberSaysSo(t *testing.T) {
	warnings := &recorder{}
	inLab(t, "m1", func(c *node.Config) {
		c.Seeds, c.Log = []string{"192.0.2.1:9400"}, slog.New(warnings)
	}, func(l *lab) {
		time.Sleep(time.Minute)
		require.Len(l.t, warnings.matching("no member answers yet at the addresses to join; trying on addresses=[192.0.2.1:9400]"), 1)
	})
}

// Promise 1: a leader that is lost half way gives "outcome unknown", at once.
func TestALeaderLostHalfWayLeavesTheOutcomeUnknown(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		leader, forwarder := l.leader(), l.follower()
		l.holdStep(leader, probe.ClusterProposed, probe.Filter{})
		errs := make(chan error, 1)
		go func() {
			_, err := l.propose(forwarder, newGroup("lost0000000000000000a", "lost", cluster.ByGroup, 1))
			errs <- err
		}()
		require.True(l.t, l.nodes[leader].Holds().Await(nil, probe.ClusterProposed, 1))
		began := time.Now()
		l.crash(leader)
		err := <-errs
		require.Equal(l.t, cluster.OutcomeUnknown, cluster.KindOf(err))
		require.ErrorContains(l.t, err, "outcome unknown")
		require.Less(l.t, time.Since(began), 5*time.Second)
		require.Nil(l.t, l.nodes[forwarder].State().GroupNamed("lost"), "it is never sent again")

		r := l.mustPropose(forwarder, newGroup("next0000000000000000a", "next", cluster.ByGroup, 1))
		require.NotNil(l.t, r.Group)
	})
}

// Promise 1: without a leader a write is refused after the manager timeout,
// and searches go on by the state that is there.
func TestWithoutALeaderWritesAreRefusedAndSearchesGoOn(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		l.index(3)
		g := l.group("m1", "analytics", cluster.ByGroup, 1)
		l.crash("m2")
		l.crash("m3")
		began := time.Now()
		_, err := l.propose("m1", newGroup("none0000000000000000a", "none", cluster.ByGroup, 1))
		require.Contains(l.t, []cluster.Kind{cluster.NotDiscovered, cluster.OutcomeUnknown}, cluster.KindOf(err), "%v", err)
		require.LessOrEqual(l.t, time.Since(began), 31*time.Second)
		cancel, done := l.hold("m1", "alice", g)
		require.True(l.t, throttled(l.search(l.t.Context(), "m1", "bob", g, 0).err))
		cancel()
		<-done
		l.requireNoPermit()
	})
}

// Promise 2: reads come from the leader and show every acknowledged write.
func TestReadsShowEveryAcknowledgedWrite(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		for i, name := range []string{"m1", "m2", "m3"} {
			g := l.group(name, "group-"+name, cluster.ByGroup, 1)
			for _, reader := range l.names {
				groups, err := l.nodes[reader].Groups(l.t.Context())
				require.NoError(l.t, err)
				require.Len(l.t, groups, i+1)
			}
			require.NotEmpty(l.t, g)
		}
	})
}

// Promise 3: a node that has not caught up refuses searches.
func TestANodeThatHasNotCaughtUpRefusesSearches(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		l.index(3)
		g := l.group("m1", "analytics", cluster.ByGroup, 1)
		victim := l.follower()
		l.crash(victim)
		l.start(victim)
		require.Equal(l.t, cluster.ClusterBlock, cluster.KindOf(l.search(l.t.Context(), victim, "alice", g, 0).err))
		l.awaitReady(victim)
		require.NoError(l.t, l.search(l.t.Context(), victim, "alice", g, 0).err)
		require.NotNil(l.t, l.nodes[victim].State().Group(g))
	})
}

// A voter that lost its disk is taken out, catches up without a vote, and
// votes again.
func TestAVoterWithoutItsDiskCatchesUpBeforeItVotes(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		l.group("m1", "analytics", cluster.ByGroup, 1)
		victim := l.follower()
		l.crash(victim)
		l.stores[victim].Lost()
		l.ids[victim] = "fresh-disk-0000000000a"
		l.start(victim)
		l.awaitReady(victim)
		require.NotNil(l.t, l.nodes[victim].State().GroupNamed("analytics"))
		require.Equal(l.t, l.ids[victim], l.nodes[victim].State().Node(victim).ID)

		// Its vote counts again: with one of the others gone there is still a
		// majority.
		other := l.follower()
		if other == victim {
			other = l.leader()
		}
		time.Sleep(5 * time.Second)
		l.crash(other)
		l.group(victim, "later", cluster.ByGroup, 1)
	})
}

// A node that leaves is out of raft and out of the state, and writes go on.
func TestANodeThatLeavesIsForgotten(t *testing.T) {
	inLab(t, "m1 m2 m3 m4", nil, func(l *lab) {
		leaver := l.follower()
		require.NoError(l.t, l.nodes[leaver].Leave(l.t.Context()))
		l.stop(leaver)
		leader := l.leader()
		require.Nil(l.t, l.nodes[leader].State().Node(leaver))
		l.group(leader, "after", cluster.ByGroup, 1)
	})
}

// A node leaves once, and a Leave ends with its context and with Close, whatever
// it waits for.
func TestALeaveEnds(t *testing.T) {
	inLab(t, "m1 m2 m3", nil, func(l *lab) {
		leaver := l.follower()
		require.NoError(l.t, l.nodes[leaver].Leave(l.t.Context()))
		for range 2 { // at once, and when gossip has forgotten the node
			require.ErrorIs(l.t, l.nodes[leaver].Leave(l.t.Context()), gossip.ErrClosed)
			time.Sleep(2 * time.Minute)
		}
		l.stop(leaver)

		refused := make(chan error, 1)
		second := l.config("x1")
		second.Name, second.OnStop = l.leader(), func(err error) { refused <- err }
		n, err := node.Start(second)
		require.NoError(l.t, err)
		defer n.Close()
		require.ErrorIs(l.t, <-refused, gossip.ErrNameTaken)
		time.Sleep(2 * time.Minute)
		require.ErrorIs(l.t, n.Leave(l.t.Context()), gossip.ErrNameTaken)
		require.NoError(l.t, n.Close())

		stays := l.follower()
		l.crash(l.leader())
		left := make(chan error, 1)
		ctx, cancel := context.WithCancel(l.t.Context())
		cancel()
		began := time.Now()
		go func() { left <- l.nodes[stays].Leave(ctx) }()
		require.ErrorIs(l.t, <-left, context.Canceled)
		require.Less(l.t, time.Since(began), time.Second)
		require.ErrorIs(l.t, l.nodes[stays].Leave(l.t.Context()), gossip.ErrClosed)
	})
	inLab(t, "m1 m2", nil, func(l *lab) {
		stays := l.follower()
		l.crash(l.leader())
		left := make(chan error, 1)
		n := l.nodes[stays]
		go func() { left <- n.Leave(context.Background()) }()
		time.Sleep(3 * time.Second) // it says so again meanwhile
		require.Empty(l.t, left)
		l.stop(stays)
		require.Error(l.t, <-left)
	})
}

// A leader that leaves ends with the others electing one of them, whatever the
// order in which messages come.
func TestTheOthersElectWhenTheLeaderLeaves(t *testing.T) {
	for seed := range uint64(counts(4, 200)) {
		network := netsim.Config{Seed: seed, Link: netsim.Faults{Latency: netsim.Range{Min: time.Millisecond, Max: time.Duration(5+10*(seed%4)) * time.Millisecond}}}
		inLabOn(t, network, "m1 m2 m3", nil, func(l *lab) {
			gone := l.leader()
			require.NoError(l.t, l.nodes[gone].Leave(l.t.Context()), "seed %d", seed)
			began := time.Now()
			l.stop(gone)
			next := l.leader()
			require.NotEqual(l.t, gone, next)
			require.Less(l.t, time.Since(began), 15*time.Second, "seed %d", seed)
			l.group(next, "after", cluster.ByGroup, 1)
		})
	}
}

// A rule is known to a node one refresh after it was made, counted from when
// the node became ready; ids of nodes and of what they make never meet.
func TestRulesAreKnownAfterOneRefresh(t *testing.T) {
	inLab(t, "m1", func(c *node.Config) {
		second := "1000"
		c.Settings.Persistent[cluster.SettingRuleRefresh] = &second
	}, func(l *lab) {
		l.index(1)
		g := l.group("m1", "analytics", cluster.ByGroup, 1)
		require.NotEqual(l.t, l.ids["m1"], g)
		l.mustPropose("m1", &cluster.CreateRule{Rule: cluster.Rule{ID: "r", Description: "d", WorkloadGroup: g, Usernames: []string{"alice"}}})
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(l.t, l.nodes["m1"].State().Version(), l.nodes["m1"].Coordinator().RulesVersion())
		r, err := l.nodes["m1"].Search(wlm.WithPrincipal(l.t.Context(), wlm.Principal{User: "alice"}), coordinator.Request{Index: "logs", Query: []byte("{}")})
		require.NoError(l.t, err)
		require.Equal(l.t, g, r.Group)
	})
}

// Section 1.5 of the reference: a limit by user or role is refused, by the node
// that takes the request and by the leader, where nobody is ever named; a whole
// group's limit is not, and neither is the form of the pull request.
func TestALimitByUserNeedsWhoNamesThem(t *testing.T) {
	const refusal = "throttling.by [username] needs a principal attribute provider (the security plugin) to be installed, otherwise the limit can never be enforced. Omit [by] to use whole-group throttling instead."
	for _, row := range []struct {
		profile, blind string // nodes that nobody is named to
		refused        bool
	}{
		{wlm.ProfileUpstream, "m1 d1", true},
		{wlm.ProfileUpstream, "d1", true},
		{wlm.ProfileUpstream, "m1", true},
		{wlm.ProfileUpstream, "", false},
		{wlm.ProfileReviewed, "m1 d1", false},
	} {
		inLab(t, "m1 d1", func(c *node.Config) {
			switches, err := wlm.Profile(row.profile)
			require.NoError(t, err)
			c.Switches, c.REST.NoPrincipals = switches, strings.Contains(row.blind, c.Name)
		}, func(l *lab) {
			key := cluster.KeyAttribute
			if row.profile == wlm.ProfileUpstream {
				key = cluster.KeyBy
			}
			l.mustPropose("d1", key.Create(newGroup(node.NewID(seedOf("whole")), "whole", cluster.ByGroup, 1).Group))
			_, err := l.propose("d1", key.Create(newGroup(node.NewID(seedOf("users")), "users", cluster.ByUsername, 1).Group))
			_, updated := l.propose("d1", key.Update(cluster.UpdateGroup{Name: "whole", Throttling: cluster.ThrottlingPatch{Attribute: cluster.Give(cluster.ByUsername)}}))
			for _, err := range []error{err, updated} {
				if row.refused {
					require.EqualError(l.t, err, refusal)
					require.Equal(l.t, cluster.IllegalArgument, cluster.KindOf(err))
				} else {
					require.NoError(l.t, err)
				}
			}
		})
	}
}
