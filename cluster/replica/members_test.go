package replica_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/replica"
)

func TestServersJoinFollowAreGivenVotesAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 1, memory)
		c.open()
		defer c.close()
		led := c.leader()
		c.propose(create("a"))
		d := c.add("d1", replica.Memory())
		d.open(nil)
		time.Sleep(5 * time.Second)
		name, _, _ := d.Leader()
		require.Empty(t, name, "it waits to be added")
		require.NoError(t, led.AddNonvoter(t.Context(), "d1", "d1"))
		require.Equal(t, text(t, led.State()), text(t, d.version(1)))
		servers, err := d.Servers()
		require.NoError(t, err)
		require.Equal(t, []replica.Server{{Name: "d1", Address: "d1"}, {Name: "m1", Address: "m1", Voter: true}}, servers)

		commit := led.CommitIndex()
		require.NoError(t, led.AddNonvoter(t.Context(), "d1", "d1"))
		require.Equal(t, commit, led.CommitIndex(), "what is so needs no entry")

		require.NoError(t, led.AddVoter(t.Context(), "d1", "d1"))
		require.NoError(t, led.TransferLeadership(t.Context()))
		require.Equal(t, "d1", c.leader().name)
		require.NoError(t, d.Remove(t.Context(), "m1"))
		led.shut()
		_, err = d.Propose(t.Context(), create("b"))
		require.NoError(t, err, "alone it is a majority")
		require.NoError(t, d.Remove(t.Context(), "nobody"))
	})
}

func TestANonvoterNeverLeadsNorCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 1, memory)
		d := c.add("d1", replica.Memory())
		c.servers = append(c.servers, replica.Server{Name: "d1", Address: "d1"})
		c.open()
		defer c.close()
		require.Equal(t, "m1", c.leader().name)
		c.nodes["m1"].shut()
		_, _, term := d.Leader()
		time.Sleep(10 * time.Minute)
		require.False(t, d.IsLeader())
		_, _, after := d.Leader()
		require.Equal(t, term, after)
		c.nodes["m1"].restart()
		c.leader()
		d.shut()
		_, err := c.nodes["m1"].Propose(t.Context(), create("a"))
		require.NoError(t, err)
	})
}

func TestAServerThatComesBackAtAnotherAddressIsFollowedThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		moved := c.others(led)[0]
		moved.shut()
		// Raft 1.8.0 takes in a server's answer without the lock under which
		// AddVoter changes where the server is.
		synctest.Wait()
		c.propose2(moved, create("a"))
		moved.address = "elsewhere"
		moved.restart()
		require.NoError(t, led.AddVoter(t.Context(), moved.name, moved.address))
		require.Equal(t, text(t, led.State()), text(t, moved.version(1)))
		c.await("it knows its own new address", func() bool {
			servers, err := moved.Servers()
			require.NoError(t, err)
			return slices.Contains(servers, replica.Server{Name: moved.name, Address: "elsewhere", Voter: true})
		})
	})
}

func TestAClusterThatRestartsAtOtherAddressesIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		c.propose(create("a"))
		c.close()
		for _, name := range c.names {
			n := c.nodes[name]
			n.listen("new-" + name)
			conf := n.config(nil)
			conf.Resolve = func(name string) (string, bool) { return "new-" + name, true }
			r, err := replica.Open(conf)
			require.NoError(t, err)
			n.Replica = r
		}
		led := c.leader()
		_, address, _ := led.Leader()
		require.Equal(t, "new-"+led.name, address)
		c.propose(create("b"))
	})
}

func TestLeadershipMovesBackAndForthAndEveryChangeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		slow := make(chan struct{}, 1) // a take-over routine that is busy most of the time
		for _, name := range c.names {
			n := c.nodes[name]
			conf := n.config(c.servers)
			conf.OnChange = func() {
				select {
				case slow <- struct{}{}:
					time.Sleep(500 * time.Millisecond)
					<-slow
				default:
				}
				n.onChange()
			}
			r, err := replica.Open(conf)
			require.NoError(t, err)
			n.Replica = r
		}
		defer c.close()
		transfers := 0
		for range 50 {
			for _, name := range c.names {
				if n := c.nodes[name]; n.IsLeader() {
					// Raft refuses a transfer that takes longer than an
					// election; the leader then leads on.
					if n.TransferLeadership(t.Context()) == nil {
						transfers++
					}
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Greater(t, transfers, 25)
		led := c.leader()
		start := time.Now()
		_, err := led.Propose(t.Context(), create("a"))
		require.NoError(t, err)
		require.Less(t, time.Since(start), 100*time.Millisecond)
		leading := 0
		for _, name := range c.names {
			if c.nodes[name].IsLeader() {
				leading++
			}
		}
		require.Equal(t, 1, leading)
	})
}

func TestAMinorityElectsNobodyAndDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		away := c.others(led)[0]
		c.network.isolate(away.name, true)
		_, _, term := away.Leader()
		time.Sleep(10 * time.Minute)
		name, _, after := away.Leader()
		require.Empty(t, name)
		require.Equal(t, term, after, "no election was started from the minority")
		c.network.isolate(away.name, false)
		time.Sleep(time.Minute)
		require.Equal(t, led.name, c.leader().name, "nor was the leader disturbed by the return")
		_, _, after = led.Leader()
		require.Equal(t, term, after)
	})
}

func TestAVoterThatIsBehindDoesNotStandInTheWayOfARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		require.Equal(t, "m1", c.leader().name)
		c.nodes["m1"].shut()
		c.propose2(c.nodes["m1"], create("a"))
		c.close()
		start := time.Now()
		for _, name := range c.names {
			c.nodes[name].restart()
		}
		require.NotEqual(t, "m1", c.leader().name)
		require.Less(t, time.Since(start), 200*time.Millisecond)
		c.nodes["m1"].version(1)
	})
}

func TestALateMajorityHasALeaderAsSoonAsItIsThere(t *testing.T) {
	for range count(50, 5) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, newMemnet(), 3, memory)
			defer c.close()
			c.nodes["m3"].open(c.servers)
			time.Sleep(time.Minute)
			start := time.Now()
			c.nodes["m2"].open(c.servers)
			c.leader("m2", "m3")
			require.Less(t, time.Since(start), 100*time.Millisecond)
			c.nodes["m1"].open(c.servers)
			c.leader()
		})
	}
}

func TestAnEntryOfAnUnknownKindStopsTheReplicasThatReadIt(t *testing.T) {
	good, err := cluster.EncodeCommand(create("a"))
	require.NoError(t, err)
	for what, entry := range map[string][]byte{
		"kind":   bytes.Replace(good, []byte("create_group"), []byte("grow_a_tail"), 1),
		"format": bytes.Replace(good, []byte(`"format":1`), []byte(`"format":2`), 1),
		"field":  bytes.Replace(good, []byte(`"resource_limits"`), []byte(`"hopes"`), 1),
		"text":   []byte("{"),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, newMemnet(), 3, memory)
				c.open()
				defer c.close()
				led, _ := c.propose(create("before"))
				require.Error(t, led.ProposeRaw(entry))
				cause := led.stopped()
				require.ErrorContains(t, cause, "log entry ")
				if what == "kind" || what == "format" {
					require.ErrorContains(t, cause, "unknown")
				}
				require.Equal(t, uint64(1), led.State().Version())
				_, err := led.Propose(t.Context(), create("after"))
				require.Error(t, err)
				require.NoError(t, led.Close())
				led.restart()
				// The next leader commits the entry and stops too. The last one
				// may never hear of that, and cannot go on alone.
				time.Sleep(time.Minute)
				stopped := 0
				for _, name := range c.names {
					n := c.nodes[name]
					require.LessOrEqual(t, n.State().Version(), uint64(1), "nobody goes on past it, nor after a restart")
					c.mu.Lock()
					if n.cause != nil {
						stopped++
						require.Equal(t, cause.Error(), n.cause.Error())
					}
					c.mu.Unlock()
				}
				require.GreaterOrEqual(t, stopped, 2)
			})
		})
	}
}

func TestASnapshotWithAnUnknownRecordStopsTheReplica(t *testing.T) {
	edit := func(data []byte) []byte {
		return bytes.Replace(data, []byte(`"kind":"group"`), []byte(`"kind":"dream"`), 1)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory, withTimings(replica.Timings{TrailingLogs: 1}))
		c.open()
		defer c.close()
		led, _ := c.propose(create("a"))
		fresh := c.add("d1", replica.Memory())
		for i := range 5 {
			c.propose(update("a", int64(i)))
		}
		require.NoError(t, led.Snapshot(t.Context()))
		led.store.EditSnapshots(edit)
		fresh.open(nil)
		require.NoError(t, led.AddNonvoter(t.Context(), "d1", "d1"))
		cause := fresh.stopped()
		require.ErrorContains(t, cause, `kind "dream" is unknown`)
		require.ErrorContains(t, cause, "snapshot of log entry ")
		require.Empty(t, fresh.states())
		require.Zero(t, fresh.State().Version())

		led.shut()
		led.listen(led.address)
		_, err := replica.Open(led.config(nil))
		require.ErrorContains(t, err, `kind "dream" is unknown`)
		led.store.EditSnapshots(func(data []byte) []byte {
			return bytes.Replace(data, []byte(`"kind":"dream"`), []byte(`"kind":"group"`), 1)
		})
		led.restart()
		led.version(6)
	})
}

func TestAStateThatIsNotTakenStopsTheReplica(t *testing.T) {
	full := errors.New("the queue is full at 10000 versions")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		led.refuse = func(s *cluster.State) error {
			if s.Version() == 2 {
				return full
			}
			return nil
		}
		c.propose(create("a"))
		_, err := led.Propose(t.Context(), create("b"))
		require.ErrorIs(t, err, replica.ErrOutcomeUnknown, "it is committed, but this node cannot go on")
		require.ErrorIs(t, led.stopped(), full)
		require.Len(t, led.states(), 1)
		other := c.propose2(led, create("c"))
		require.Equal(t, uint64(3), other.State().Version())
	})
}

func TestATermThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newMemnet(), 3, memory)
		c.open()
		defer c.close()
		led := c.leader()
		sick := c.others(led)[0]
		sick.store.SetFault(full)
		led.shut()
		time.Sleep(10 * time.Second)
		require.Zero(t, sick.State().Version())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := sick.Propose(ctx, create("a"))
		require.Error(t, err)
		sick.store.SetFault(nil)
		c.leader()
		c.propose(create("a"))
		sick.version(1)
		sick.store.SetFault(full)
		led.restart()
		time.Sleep(10 * time.Second)
		start := time.Now()
		sick.shut() // while it waits for space, if it does
		require.Zero(t, time.Since(start))
	})
}

func TestC28TheLogLevelsOffOverRestartsAndManyChanges(t *testing.T) {
	const threshold, trailing = 100, 50
	timings := withTimings(replica.Timings{SnapshotThreshold: threshold, TrailingLogs: trailing})
	for _, kind := range []string{"memory", "bolt"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				store := memory
				if kind == "bolt" {
					store = func(string) *replica.Store { return replica.Bolt(dir) }
				}
				c := newCluster(t, newMemnet(), 1, store, timings)
				c.open()
				defer c.close()
				n := c.leader()
				never := replica.NewMachine(func(*cluster.State, uint64) error { return nil })
				index, stamp, longest := uint64(0), int64(0), 0
				write := func(command cluster.Command) {
					_, err := n.Propose(t.Context(), command)
					require.NoError(t, err)
					data, err := cluster.EncodeCommand(command)
					require.NoError(t, err)
					index++
					_, err = never.Apply(index, data)
					require.NoError(t, err)
					kept, _ := n.store.Kept(t)
					longest = max(longest, kept)
				}
				write(create("g"))
				var replayed int
				var sizes []int64 // of what is on disk, after each restart
				for range count(50, 8) {
					for range 60 {
						stamp++
						write(update("g", stamp))
					}
					n.shut()
					n.restart()
					n = c.leader()
					n.version(index)
					replayed = max(replayed, len(n.states()))
					sizes = append(sizes, sizeBelow(t, dir))
				}
				for range count(10_000, 500) {
					stamp++
					write(update("g", stamp))
				}
				n.shut()
				n.restart()
				require.Equal(t, text(t, never.State()), text(t, n.version(index)))
				require.LessOrEqual(t, longest, threshold+trailing)
				require.LessOrEqual(t, replayed, threshold+trailing, "a start replays no more than that")
				sizes = append(sizes, sizeBelow(t, dir))
				levelled := slices.Max(sizes[:5]) // two snapshots have been taken, and the log was cut twice
				// Bolt doubles its file when pages run short, once for good; a
				// log that was never cut would need four times the room.
				require.LessOrEqual(t, slices.Max(sizes), 2*levelled+levelled/4, "what is on disk levels off: %v", sizes)
				require.Equal(t, kind == "bolt", levelled > 0)
				t.Log(kind, "longest log", longest, "most replayed", replayed)
			})
		})
	}
}

// sizeBelow returns how many bytes the files of a folder have.
func sizeBelow(t *testing.T, dir string) (sum int64) {
	require.NoError(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	}))
	return sum
}

func FuzzLogEntry(f *testing.F) {
	for _, command := range []cluster.Command{
		create("a"), update("a", 3), &cluster.DeleteGroup{Name: "a"}, &cluster.PutNode{}, &cluster.CreateRule{}, &cluster.UpdateRule{},
		&cluster.CreateIndex{Name: "logs", Shards: 3}, &cluster.PutSettings{},
	} {
		data, err := cluster.EncodeCommand(command)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"format":1,"kind":"update_group","body":{"name":"seed","throttling":null,"updated_at":-1}}`))
	f.Add([]byte(`{"format":1,"kind":"create_index","body":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		delivered := 0
		m := replica.NewMachine(func(*cluster.State, uint64) error { delivered++; return nil })
		seed, err := cluster.EncodeCommand(create("seed"))
		require.NoError(t, err)
		before, err := m.Apply(1, seed)
		require.NoError(t, err)
		made, err := m.Apply(2, data)
		require.NotEqual(t, made == nil, err == nil, "a state or an error")
		if err != nil {
			require.Same(t, before, m.State())
			require.Equal(t, 1, delivered)
			return
		}
		require.Equal(t, before.Version()+1, made.Version())
		require.Equal(t, 2, delivered)
		again := replica.NewMachine(func(*cluster.State, uint64) error { return nil })
		require.NoError(t, again.Restore([]byte(text(t, made))), "what an entry makes can be read back from a snapshot")
		require.Equal(t, text(t, made), text(t, again.State()))
	})
}

func FuzzSnapshot(f *testing.F) {
	s := cluster.Empty()
	for i := range 3 {
		f.Add([]byte(text(f, s)))
		next, err := cluster.Apply(s, create(fmt.Sprint("g", i)))
		require.NoError(f, err)
		s = next
	}
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		delivered := 0
		m := replica.NewMachine(func(*cluster.State, uint64) error { delivered++; return nil })
		if err := m.Restore(data); err != nil {
			require.Zero(t, delivered)
			require.Zero(t, m.State().Version())
			require.Error(t, m.Restore([]byte(text(t, cluster.Empty()))), "once stopped it stays so")
			return
		}
		require.Equal(t, 1, delivered)
		again := replica.NewMachine(func(*cluster.State, uint64) error { return nil })
		require.NoError(t, again.Restore([]byte(text(t, m.State()))))
		require.Equal(t, text(t, m.State()), text(t, again.State()))
	})
}
