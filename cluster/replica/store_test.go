package replica_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/replica"
)

// full is a disk without space: logs fails appends alone, else every write.
func full(op replica.Op) error {
	if op.Kind == replica.OpRead {
		return nil
	}
	return syscall.ENOSPC
}

func fullLog(op replica.Op) error {
	if op.Kind == replica.OpStoreLogs {
		return syscall.ENOSPC
	}
	return nil
}

// writes proposes n changes through whoever leads, within a minute each, and
// returns how many were refused by a full disk before they went through.
func (c *testCluster) writes(n int, stamp *int64) (refused int) {
	for range n {
		*stamp++
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		for {
			_, err := c.anyLeader().Propose(ctx, update("g", *stamp))
			moved, full := (*replica.NotLeaderError)(nil), (*replica.StoreError)(nil)
			if errors.As(err, &full) {
				refused++
				require.ErrorIs(c.t, err, syscall.ENOSPC)
				require.ErrorContains(c.t, err, "store logs")
			}
			if err == nil {
				break
			}
			if !errors.As(err, &moved) && !errors.As(err, &full) && !errors.Is(err, replica.ErrOutcomeUnknown) {
				require.NoError(c.t, err)
			}
		}
		cancel()
	}
	return refused
}

// anyLeader waits until some node leads.
func (c *testCluster) anyLeader() (led *testNode) {
	c.await("a node leads", func() bool {
		for _, name := range c.names {
			if n := c.nodes[name]; n.Replica != nil && n.IsLeader() {
				led = n
				return true
			}
		}
		return false
	})
	return led
}

func TestC27WritesGoOnElsewhereWhenTheLeadersDiskIsFullAndHereWhenThereIsSpaceAgain(t *testing.T) {
	for kind, store := range stores(t) {
		for name, fault := range map[string]func(replica.Op) error{"log": fullLog, "everything": full} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, newMemnet(), 3, store)
					c.open()
					defer c.close()
					c.propose(create("g"))
					var stamp int64
					c.writes(3, &stamp)

					led := c.leader()
					time.Sleep(time.Second) // for the barrier of the last write
					led.store.SetFault(fault)
					start := time.Now()
					require.Equal(t, 1, c.writes(1, &stamp), "one clear refusal")
					require.Less(t, time.Since(start), 200*time.Millisecond, "another voter leads at once")
					c.writes(5, &stamp)
					next := c.anyLeader()
					require.NotEqual(t, led.name, next.name)
					led.store.SetFault(nil)
					led.version(next.State().Version())

					follower := c.others(c.anyLeader())[0]
					follower.store.SetFault(fault)
					require.Zero(t, c.writes(5, &stamp))
					time.Sleep(time.Minute)
					require.Zero(t, c.writes(5, &stamp))
					follower.store.SetFault(nil)
					c.writes(1, &stamp)
					want := c.anyLeader().State()
					for _, name := range c.names {
						require.Equal(t, text(t, want), text(t, c.nodes[name].version(want.Version())))
					}
					c.close()
					for _, name := range c.names {
						c.nodes[name].restart()
					}
					for _, name := range c.names {
						require.Equal(t, text(t, want), text(t, c.nodes[name].version(want.Version())), "no half entry is found")
					}
				})
			})
		}
	}
}

func TestADiskThatIsFullOnAllRefusesClearlyAndGoesOnWithSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		c.propose(create("g"))
		for _, name := range c.names {
			c.nodes[name].version(1)
		}
		time.Sleep(time.Second)
		for _, name := range c.names {
			c.nodes[name].store.SetFault(full)
		}
		_, err := c.leader().Propose(t.Context(), update("g", 1))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NotErrorIs(t, err, replica.ErrOutcomeUnknown)
		time.Sleep(time.Minute)
		for _, name := range c.names {
			require.Equal(t, uint64(1), c.nodes[name].State().Version())
			c.nodes[name].store.SetFault(nil)
		}
		var stamp int64
		require.Zero(t, c.writes(3, &stamp))
	})
}

func TestAFollowerWhoseTailIsReplacedOnAFullDiskKeepsItUntilThereIsSpace(t *testing.T) {
	for kind, store := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, newMemnet(), 3, store)
				c.open()
				defer c.close()
				led := c.leader()
				c.propose(create("g"))
				led.version(1)
				c.network.isolate(led.name, true) // its next entries will never be committed
				for range 3 {
					_, err := led.Propose(t.Context(), create("lost"))
					if err != nil {
						require.ErrorIs(t, err, replica.ErrOutcomeUnknown)
						break
					}
				}
				rest := c.others(led)
				next := c.leader(rest[0].name, rest[1].name)
				_, err := next.Propose(t.Context(), update("g", 1))
				require.NoError(t, err)
				led.store.SetFault(fullLog)
				c.network.isolate(led.name, false)
				time.Sleep(10 * time.Second)
				led.store.SetFault(nil)
				require.Equal(t, text(t, next.State()), text(t, led.version(2)))
			})
		})
	}
}

func TestACrashedNodeHasWhatItHadWrittenAndNothingLater(t *testing.T) {
	for kind, store := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, newMemnet(), 1, store)
				c.open()
				defer c.close()
				n := c.leader()
				_, err := n.Propose(t.Context(), create("kept"))
				require.NoError(t, err)
				time.Sleep(time.Second) // for the barrier of that write
				n.store.Freeze()
				before, snapshot := n.store.Kept(t)
				_, err = n.Propose(t.Context(), create("late"))
				require.ErrorIs(t, err, replica.ErrFrozen)
				require.NotErrorIs(t, err, replica.ErrOutcomeUnknown)
				require.ErrorIs(t, n.Snapshot(t.Context()), replica.ErrFrozen)
				time.Sleep(10 * time.Second)
				after, snapshotAfter := n.store.Kept(t)
				require.Equal(t, []any{before, snapshot}, []any{after, snapshotAfter})
				n.shut()
				n.restart()
				s := n.version(1)
				require.NotNil(t, s.GroupNamed("kept"))
				_, err = c.leader().Propose(t.Context(), create("after"))
				require.NoError(t, err)
			})
		})
	}
}

func TestALostStoreStartsFromNothingAndIsTaughtTheState(t *testing.T) {
	for kind, store := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, newMemnet(), 3, store)
				c.open()
				defer c.close()
				c.propose(create("g"))
				gone := c.others(c.leader())[0]
				gone.shut()
				require.NoError(t, gone.store.Lost())
				led := c.leader()
				require.NoError(t, led.Remove(t.Context(), gone.name))
				gone.restart()
				require.Zero(t, gone.State().Version())
				require.NoError(t, led.AddNonvoter(t.Context(), gone.name, gone.address))
				require.Equal(t, text(t, led.State()), text(t, gone.version(1)))
				require.NoError(t, led.AddVoter(t.Context(), gone.name, gone.address))
			})
		})
	}
}

func TestAnEntryThatCannotBeReadStopsTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		c.propose(create("g"))
		for _, name := range c.names {
			c.nodes[name].version(1)
		}
		bad := c.others(c.leader())[0]
		bad.store.SetFault(func(op replica.Op) error {
			if op.Kind == replica.OpRead {
				return syscall.EIO
			}
			return nil
		})
		c.propose2(bad, update("g", 1))
		require.ErrorIs(t, bad.stopped(), syscall.EIO)
		require.Equal(t, uint64(1), bad.State().Version())
		_, err := bad.Propose(t.Context(), create("x"))
		require.Error(t, err)
		c.propose2(bad, update("g", 2))
		require.NoError(t, bad.Close())
		bad.store.SetFault(nil)
		bad.restart()
		bad.version(3)
	})
}

func TestOpenSaysWhatTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 1, memory)
		n := c.nodes["m1"]
		n.store.SetFault(full)
		_, err := replica.Open(n.config(c.servers))
		require.ErrorIs(t, err, syscall.ENOSPC)
		n.store.SetFault(nil)
		n.listen(n.address)
		n.open(c.servers)
		defer c.close()
		c.leader()
	})
}

func TestC25ASnapshotShowsOneIndexWhileWritesGoOn(t *testing.T) {
	for kind, store := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			c := newCluster(t, nil, 1, store)
			c.open()
			defer c.close()
			n := c.leader()
			for i := range 50 {
				c.propose(create(fmt.Sprint("old", i)))
				c.propose(update(fmt.Sprint("old", i), int64(i)))
			}
			atHundred := n.State()
			require.Equal(t, uint64(100), atHundred.Version())
			wanted := text(t, atHundred)

			gate, arrived, once := make(chan struct{}), make(chan struct{}), sync.Once{}
			n.store.SetFault(func(op replica.Op) error {
				if op.Kind == replica.OpSnapshotWrite {
					once.Do(func() { close(arrived) })
					<-gate
				}
				return nil
			})
			taken := make(chan error)
			go func() { taken <- n.Snapshot(t.Context()) }()
			<-arrived
			for i := range 50 {
				switch i % 3 {
				case 0:
					c.propose(create(fmt.Sprint("new", i)))
				case 1:
					c.propose(update(fmt.Sprint("old", i), 1000))
				case 2:
					c.propose(&cluster.DeleteGroup{Name: fmt.Sprint("old", i)})
				}
			}
			live := text(t, n.State())
			close(gate)
			require.NoError(t, <-taken)

			n.shut()
			n.restart()
			n.version(150)
			states := n.states()
			require.Equal(t, wanted, text(t, states[0]), "exactly the state at version 100")
			require.Equal(t, wanted, text(t, atHundred))
			require.Equal(t, uint64(100), states[0].Version())
			require.Equal(t, live, text(t, n.State()))
			require.Len(t, states, 51, "entries 101 to 150 are replayed")
		})
	}
}

func TestC24ARestoreReplacesTheStateOfANodeThatWasCutOff(t *testing.T) {
	for kind, store := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, newMemnet(), 3, store, withTimings(replica.Timings{TrailingLogs: 1}))
				c.open()
				defer c.close()
				c.propose(create("gone"))
				c.propose(create("changed"))
				away := c.others(c.leader())[1]
				away.version(2)
				c.network.isolate(away.name, true)
				c.propose2(away, &cluster.DeleteGroup{Name: "gone"})
				led := c.propose2(away, update("changed", 7))
				for range 3 {
					c.propose2(away, update("changed", 8))
				}
				require.NoError(t, led.Snapshot(t.Context()))
				kept, _ := led.store.Kept(t)
				require.Less(t, kept, 4, "the log is cut")
				c.network.isolate(away.name, false)
				restored := away.version(3)
				require.Equal(t, uint64(7), restored.Version(), "in one step")
				require.Nil(t, restored.GroupNamed("gone"))
				require.Equal(t, text(t, led.State()), text(t, restored))
				require.Equal(t, []uint64{1, 2, 7}, versions(away.states()))
				d := cluster.Diff(away.states()[1], restored)
				require.Len(t, d.Groups, 2)
				for _, change := range d.Groups { // what listeners are told
					require.Equal(t, change.Old.Name == "gone", change.New == nil, "a removal of one, a change of the other")
				}
				_, s := c.propose(update("changed", 9))
				require.Equal(t, text(t, s), text(t, away.version(8)), "and it follows again")
				c.close()
				away.restart()
				require.Equal(t, text(t, restored), text(t, away.states()[0]), "from its own store")
			})
		})
	}
}

// propose2 writes through the nodes but one.
func (c *testCluster) propose2(but *testNode, command cluster.Command) *testNode {
	rest := c.others(but)
	led := c.leader(rest[0].name, rest[1].name)
	_, err := led.Propose(c.t.Context(), command)
	require.NoError(c.t, err)
	return led
}

func TestASnapshotThatFailsLeavesNothingAndIsTakenLater(t *testing.T) {
	for kind, store := range stores(t) {
		for _, op := range []replica.OpKind{replica.OpSnapshotCreate, replica.OpSnapshotWrite, replica.OpSnapshotClose} {
			t.Run(kind+"/"+string(op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, newMemnet(), 1, store, withTimings(replica.Timings{SnapshotThreshold: 20, TrailingLogs: 2}))
					c.open()
					defer c.close()
					n := c.leader()
					var asked atomic.Int32
					n.store.SetFault(func(o replica.Op) error {
						if o.Kind == op {
							asked.Add(1)
							return syscall.ENOSPC
						}
						return nil
					})
					c.propose(create("g"))
					for i := range 50 {
						c.propose(update("g", int64(i)))
					}
					require.ErrorIs(t, n.Snapshot(t.Context()), syscall.ENOSPC)
					require.Less(t, asked.Load(), int32(40), "a full disk is not asked at each entry")
					_, index := n.store.Kept(t)
					require.Zero(t, index)
					n.shut()
					n.restart()
					n.version(51)
					require.Equal(t, upTo(51), versions(n.states()), "from the log alone")
					n.store.SetFault(nil)
					c.leader()
					c.propose(update("g", 100))
					require.NoError(t, n.Snapshot(t.Context()))
					_, index = n.store.Kept(t)
					require.NotZero(t, index)
				})
			})
		}
	}
}

func TestOpsSayWhatTheyAreAbout(t *testing.T) {
	for want, op := range map[string]replica.Op{
		"store logs, entries 3 to 5":     {Kind: replica.OpStoreLogs, First: 3, Last: 5},
		"store logs, entry 3":            {Kind: replica.OpStoreLogs, First: 3, Last: 3},
		"set stable CurrentTerm":         {Kind: replica.OpSetStable, Key: "CurrentTerm"},
		"read snapshot to entry 9":       {Kind: replica.OpRead, Key: "snapshot", Last: 9},
		"snapshot create, entry 9":       {Kind: replica.OpSnapshotCreate, Last: 9},
		"delete logs, entries 1 to 1000": {Kind: replica.OpDeleteLogs, First: 1, Last: 1000},
	} {
		require.Equal(t, want, op.String())
	}
	require.True(t, strings.HasPrefix((&replica.StoreError{Op: replica.Op{Kind: "x"}, Err: syscall.EIO}).Error(), "x: "))
}
