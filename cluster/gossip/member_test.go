package gossip_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/gossip"
)

func TestMembersCarryRolesAndAddresses(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, nil)
		defer closeAll(t, m1, m2, m3)
		want := gossip.Member{Name: "m3", Address: "10.0.0.3:7946", ID: "m3-id", Roles: []string{"manager", "data"}, Raft: "r:m3", HTTP: "h:m3", Alive: true}
		for _, n := range []*node{m1, m2, m3} {
			all := n.Members()
			require.Len(t, all, 3)
			require.Equal(t, want, all[2])
		}

		require.NoError(t, m3.UpdateSelf(gossip.Member{ID: "m3-id", Roles: []string{"data"}, Raft: "r2", HTTP: "h2"}))
		want.Roles, want.Raft, want.HTTP = []string{"data"}, "r2", "h2"
		for _, n := range []*node{m1, m2, m3} {
			n.awaitChange(func() bool { return n.Members()[2].Raft == "r2" })
			require.Equal(t, want, n.Members()[2])
		}
		require.ErrorContains(t, m3.UpdateSelf(gossip.Member{ID: strings.Repeat("x", 600)}), "at most 512")
		require.Equal(t, want, m3.Members()[2])
	})
}

func TestMemberThatLeavesIsForgottenAndItsRequestsFail(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, blocking)
		defer closeAll(t, m1, m2)
		outcome := m1.ask("m3")
		synctest.Wait()
		require.NoError(t, m3.Leave(t.Context()))
		closeAll(t, m3)
		require.ErrorIs(t, <-outcome, gossip.ErrGone)
		for _, n := range []*node{m1, m2} {
			n.awaitChange(func() bool { return len(n.Members()) == 2 })
		}
		_, err := m1.Request(t.Context(), "m3", nil)
		require.ErrorIs(t, err, gossip.ErrUnknownMember)
		time.Sleep(time.Minute)
		require.Len(t, m1.Members(), 2)
		require.Len(t, m2.Members(), 2)
	})
}

// A Leave that is not waited for is still one: Close sees to it.
func TestCloseWaitsForALeaveThatNobodyWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, nil)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m3.Leave(ended); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.ErrorIs(t, m3.UpdateSelf(gossip.Member{}), gossip.ErrClosed)
		closeAll(t, m3)
		time.Sleep(time.Second)
		require.Len(t, m1.Members(), 2)
		require.Len(t, m2.Members(), 2)
		closeAll(t, m1, m2)
	})
}

// memberlist forgets itself once it has left for a while.
func TestNodeThatHasLeftSaysNothingMore(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, nil)
		defer closeAll(t, m1, m2, m3)
		impostor := f.start(t, "m2", "10.0.0.9:7946", nil)
		defer closeAll(t, impostor)
		_, err := impostor.Join(t.Context(), []string{m1.address})
		require.ErrorIs(t, err, gossip.ErrNameTaken)
		require.NoError(t, m3.Leave(t.Context()))
		for range 3 {
			require.ErrorIs(t, m3.UpdateSelf(gossip.Member{ID: "other"}), gossip.ErrClosed)
			require.ErrorIs(t, impostor.UpdateSelf(gossip.Member{ID: "other"}), gossip.ErrNameTaken)
			time.Sleep(time.Minute)
		}
		require.Equal(t, []string{"m1", "m2"}, m1.living())
	})
}

func TestKilledMemberIsDeadAtOnceWhileRequestsWait(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, blocking)
		defer closeAll(t, m1, m2)
		outcome := m1.ask("m3")
		time.Sleep(5 * time.Second)
		closeAll(t, m3)
		killed := time.Now()
		err := <-outcome
		require.ErrorIs(t, err, gossip.ErrGone)
		require.NotErrorIs(t, err, gossip.ErrNotSent, "m3 had the request")
		require.LessOrEqual(t, time.Since(killed), time.Second)
		require.False(t, m1.Alive("m3"))
		require.Len(t, m1.Members(), 3, "the dead are remembered")

		_, err = m1.Request(t.Context(), "m3", nil)
		require.ErrorIs(t, err, gossip.ErrGone)
		require.ErrorIs(t, err, gossip.ErrNotSent)
		m2.awaitChange(func() bool { return !m2.Alive("m3") })
	})
}

func TestRefusedDialFailsEverythingThatWaitsForTheMember(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, blocking)
		defer closeAll(t, m1, m2)
		waiting := m1.ask("m3")
		time.Sleep(10 * time.Millisecond)
		closeAll(t, m3)
		killed := time.Now()
		_, err := m1.Request(t.Context(), "m3", nil)
		require.ErrorIs(t, err, gossip.ErrNotSent, "its dial was refused")
		require.ErrorIs(t, <-waiting, gossip.ErrGone)
		require.Less(t, time.Since(killed), 50*time.Millisecond)
		require.False(t, m1.Alive("m3"))
	})
}

func TestSilentMemberIsGoneWhenGossipSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, blocking)
		defer closeAll(t, m1, m2, m3)
		outcome := m1.ask("m3")
		synctest.Wait()
		f.partition(isolate(m3.address))
		cut := time.Now()
		require.ErrorIs(t, <-outcome, gossip.ErrGone)
		require.Less(t, time.Since(cut), 20*time.Second)
		require.Equal(t, []string{"m1", "m2"}, m1.living())
	})
}

func TestRefusedMemberIsAliveAgainOnceHeard(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, nil)
		defer closeAll(t, m1, m2, m3)
		// For a moment nothing listens at m3's address, though m3 lives on.
		f.mu.Lock()
		delete(f.hosts, m3.address)
		f.mu.Unlock()
		_, err := m1.Request(t.Context(), "m3", nil)
		require.ErrorIs(t, err, gossip.ErrNotSent)
		require.False(t, m1.Alive("m3"))
		f.mu.Lock()
		f.hosts[m3.address] = m3.host
		f.mu.Unlock()
		_, err = m3.Request(t.Context(), "m1", nil)
		require.NoError(t, err)
		require.True(t, m1.Alive("m3"))
		_, err = m1.Request(t.Context(), "m3", []byte("x"))
		require.NoError(t, err)
	})
}

// C31.
func TestMemberComesBackAtAnotherAddress(t *testing.T) {
	second := "10.0.0.3:8000"
	stop := map[string]func(t *testing.T, m3 *node){
		"killed and back at once": func(t *testing.T, m3 *node) { closeAll(t, m3) },
		"killed and back after 60s": func(t *testing.T, m3 *node) {
			closeAll(t, m3)
			time.Sleep(time.Minute)
		},
		"left and back at once": func(t *testing.T, m3 *node) {
			require.NoError(t, m3.Leave(t.Context()))
			closeAll(t, m3)
		},
		"fell silent and back at once": func(t *testing.T, m3 *node) {
			m3.host.f.partition(isolate(m3.address))
			closeAll(t, m3)
		},
	}
	for name, stop := range stop {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fabric) {
				m1, m2, m3 := f.trio(t, nil)
				stop(t, m3)
				began := time.Now()
				again := f.start(t, "m3", second, nil)
				_, err := again.Join(t.Context(), []string{m1.address, m2.address, m3.address})
				require.NoError(t, err)
				defer closeAll(t, m1, m2, again)
				for _, n := range []*node{m1, m2} {
					n.awaitChange(func() bool { return n.Alive("m3") && n.addressOf("m3") == second })
				}
				require.LessOrEqual(t, time.Since(began), 5*time.Second)

				old := f.dialled(m3.address)
				for _, n := range []*node{m1, m2} {
					got, err := n.Request(t.Context(), "m3", []byte("hello"))
					require.NoError(t, err)
					require.Equal(t, "hello", string(got))
				}
				require.Equal(t, old, f.dialled(m3.address), "nothing goes to the old address")
				time.Sleep(5 * time.Minute)
				require.Equal(t, []string{"m1", "m2", "m3"}, m1.living())
				require.Equal(t, second, m1.addressOf("m3"))
				require.Len(t, again.Members(), 3)
			})
		})
	}
}

// C31.
func TestSecondLiveNodeOfANameIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) {
			self := c.Self
			c.Handler = func(context.Context, string, []byte) ([]byte, error) { return []byte(self.Address), nil }
		})
		defer closeAll(t, m1, m2, m3)
		impostor := f.start(t, "m3", "10.0.0.9:7946", func(c *gossip.Config) {
			c.Handler = func(context.Context, string, []byte) ([]byte, error) { return []byte("impostor"), nil }
		})
		_, err := impostor.Join(t.Context(), []string{m1.address, m2.address})
		require.ErrorIs(t, err, gossip.ErrNameTaken)
		require.ErrorContains(t, err, m3.address)
		_, err = impostor.Join(t.Context(), []string{m1.address})
		require.ErrorIs(t, err, gossip.ErrNameTaken)

		for range 30 { // while the impostor stays up, and after
			for _, n := range []*node{m1, m2} {
				require.True(t, n.Alive("m3"))
				require.Equal(t, m3.address, n.addressOf("m3"))
				got, err := n.Request(t.Context(), "m3", nil)
				require.NoError(t, err)
				require.Equal(t, m3.address, string(got))
			}
			time.Sleep(time.Second)
		}
		closeAll(t, impostor)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"m1", "m2", "m3"}, m1.living())
		require.Equal(t, m3.address, m1.addressOf("m3"))
		require.Equal(t, []string{"m1", "m2", "m3"}, m3.living())
	})
}

// C31, when the only node that can tell is the first of the name itself, and it still looks for others.
func TestLoneNodeDoesNotYieldToASecondOfItsName(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1 := f.start(t, "m1", "10.0.0.1:7946", nil)
		f.host("10.0.0.5:7946")
		f.partition(isolate("10.0.0.5:7946")) // dials to it hang
		seeking := make(chan error, 1)
		go func() {
			_, err := m1.Join(context.Background(), []string{"10.0.0.5:7946"})
			seeking <- err
		}()
		synctest.Wait()
		impostor := f.start(t, "m1", "10.0.0.9:7946", nil)
		_, err := impostor.Join(t.Context(), []string{m1.address})
		require.ErrorIs(t, err, gossip.ErrNameTaken)
		time.Sleep(3 * time.Second)
		closeAll(t, impostor)
		require.NotErrorIs(t, <-seeking, gossip.ErrNameTaken)

		m2 := f.start(t, "m2", "10.0.0.2:7946", nil)
		defer closeAll(t, m1, m2)
		_, err = m2.Join(t.Context(), []string{m1.address})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"m1", "m2"}, m1.living())
		require.Equal(t, m1.address, m2.addressOf("m1"))
	})
}

// Two lives of one name on the two sides of a cut: each node keeps the one it has while that lives, then takes the other.
func TestNameBorneOnBothSidesOfACut(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, nil)
		f.partition(isolate(m3.address))
		time.Sleep(time.Minute)
		other := f.start(t, "m3", "10.0.0.9:7946", nil)
		_, err := other.Join(t.Context(), []string{m1.address, m2.address})
		require.NoError(t, err)
		f.partition(nil)
		time.Sleep(time.Minute)
		for _, n := range []*node{m1, m2} {
			require.Equal(t, []string{"m1", "m2", "m3"}, n.living())
			require.Equal(t, other.address, n.addressOf("m3"))
		}
		require.Equal(t, []string{"m1", "m2", "m3"}, m3.living())
		closeAll(t, other)
		for _, n := range []*node{m1, m2} {
			n.awaitChange(func() bool { return n.addressOf("m3") == m3.address && n.Alive("m3") })
			_, err := n.Request(t.Context(), "m3", nil)
			require.NoError(t, err)
		}
		closeAll(t, m1, m2, m3)
	})
}

func TestRestartAtTheSameAddressFailsWhatWaitedForTheEarlierLife(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, blocking)
		outcome := m1.ask("m3")
		time.Sleep(10 * time.Millisecond)
		closeAll(t, m3)
		killed := time.Now()
		again := f.start(t, "m3", m3.address, nil)
		_, err := again.Join(t.Context(), []string{m1.address, m2.address})
		require.NoError(t, err)
		defer closeAll(t, m1, m2, again)
		require.ErrorIs(t, <-outcome, gossip.ErrGone)
		require.LessOrEqual(t, time.Since(killed), time.Second)
		for _, n := range []*node{m1, m2} {
			n.awaitChange(func() bool { return n.Alive("m3") })
			_, err := n.Request(t.Context(), "m3", nil)
			require.NoError(t, err)
		}
		require.LessOrEqual(t, time.Since(killed), 5*time.Second)
	})
}

// Two nodes of one name are worth a warning, two starts of one node are none, although gossip remembers the first for long.
func TestOnlyANameOfTwoNodesIsWarnedOf(t *testing.T) {
	for name, second := range map[string]string{"started again": "10.0.0.3:7946", "another node": "10.0.0.9:7946"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fabric) {
				var log lockedBuffer
				loud := func(c *gossip.Config) {
					c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
				}
				m1, m2, m3 := f.trio(t, loud)
				defer closeAll(t, m1, m2)
				if second == m3.address {
					closeAll(t, m3)
				} else {
					defer closeAll(t, m3)
				}
				again := f.start(t, "m3", second, loud)
				defer closeAll(t, again)
				_, err := again.Join(t.Context(), []string{m1.address, m2.address})
				time.Sleep(time.Minute)
				warnings, _ := log.count("level=WARN")
				if second == m3.address {
					require.NoError(t, err)
					require.Zero(t, warnings, "%s", log.b.String())
				} else {
					require.ErrorIs(t, err, gossip.ErrNameTaken)
					require.Positive(t, warnings)
				}
			})
		})
	}
}

func TestAnswerForAnEarlierLifeIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		release := make(chan struct{})
		m1 := f.start(t, "m1", "10.0.0.1:7946", func(c *gossip.Config) {
			c.Handler = func(_ context.Context, _ string, body []byte) ([]byte, error) {
				<-release // also when the requester is gone: the answer is what is tested
				return body, nil
			}
		})
		m2 := f.start(t, "m2", "10.0.0.2:7946", nil)
		join(t, m1, m2)
		go func() { _, _ = m2.Request(context.Background(), "m1", []byte("first life")) }()
		time.Sleep(10 * time.Millisecond)
		closeAll(t, m2)
		again := f.start(t, "m2", m2.address, nil)
		_, err := again.Join(t.Context(), []string{m1.address})
		require.NoError(t, err)
		second := make(chan string)
		go func() {
			body, _ := again.Request(context.Background(), "m1", []byte("second life"))
			second <- string(body)
		}()
		time.Sleep(10 * time.Millisecond)
		close(release)
		require.Equal(t, "second life", <-second)
		closeAll(t, m1, again)
	})
}

// C29.
func TestSidesOfALongCutFindEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) { c.Timings.DeadMemory = time.Second })
		defer closeAll(t, m1, m2, m3)
		for _, long := range []time.Duration{10 * time.Second, 10 * time.Second, time.Minute, 10 * time.Second} {
			f.partition(isolate(m3.address))
			time.Sleep(long)
			require.Equal(t, []string{"m1", "m2"}, m1.living())
			if long > 10*time.Second {
				require.Equal(t, []string{"m3"}, m3.living())
			}
			f.partition(nil)
			healed := time.Now()
			for _, n := range []*node{m1, m2, m3} {
				n.awaitChange(func() bool { return len(n.living()) == 3 })
			}
			require.LessOrEqual(t, time.Since(healed), 10*time.Second)
			_, err := m1.Request(t.Context(), "m3", nil)
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
		}
	})
}

// C30.
func TestStarvedNodeDoesNotGetHealthyOnesDropped(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		held := 0
		m1, m2, m3 := f.trio(t, blocking)
		defer closeAll(t, m1, m2, m3)
		outcome := m3.ask("m1") // held on m1 throughout
		dropped := func(n, other *node) {
			for len(n.changes) > 0 {
				<-n.changes
			}
			require.True(t, n.Alive(other.name))
		}
		for range 20 {
			resume := m2.host.stall()
			for range 20 {
				time.Sleep(100 * time.Millisecond)
				dropped(m1, m3)
				dropped(m3, m1)
			}
			resume()
			for range 10 {
				time.Sleep(100 * time.Millisecond)
				dropped(m1, m3)
				dropped(m3, m1)
			}
		}
		select {
		case err := <-outcome:
			require.Fail(t, "the held request ended", "%v", err)
		default:
			held++
		}
		require.Equal(t, 1, held)
	})
}

func TestSeedThatIsNotUpYetIsMetLater(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1 := f.start(t, "m1", "10.0.0.1:7946", nil)
		_, err := m1.Join(t.Context(), []string{"10.0.0.2:7946", m1.address})
		require.Error(t, err)
		time.Sleep(time.Minute)
		m2 := f.start(t, "m2", "10.0.0.2:7946", nil)
		defer closeAll(t, m1, m2)
		took := m1.awaitChange(func() bool { return m1.Alive("m2") })
		require.LessOrEqual(t, took, 4*time.Second)
		m2.awaitChange(func() bool { return m2.Alive("m1") })
	})
}

func TestDeadMembersAreForgottenInTime(t *testing.T) {
	bubble(t, func(t *testing.T, f *fabric) {
		m1, m2, m3 := f.trio(t, func(c *gossip.Config) { c.Timings.Forget = time.Hour })
		closeAll(t, m3)
		time.Sleep(30 * time.Minute)
		require.Len(t, m1.Members(), 3)
		time.Sleep(31 * time.Minute)
		require.Len(t, m1.Members(), 2)
		require.Len(t, m2.Members(), 2)
		closeAll(t, m1, m2)
	})
}

func TestConfigFaultsAreReportedAtOnce(t *testing.T) {
	_, err := gossip.Start(gossip.Config{
		Self:    gossip.Member{Name: "a@b", Address: "0.0.0.0:7946", ID: strings.Repeat("x", 513)},
		Key:     []byte("short"),
		Timings: gossip.Timings{Dial: -1, SuspicionMult: -1},
		Bounds:  gossip.Bounds{MessageBytes: 17 << 20, PackMessages: -1},
	})
	for _, want := range []string{
		`"a@b"`, "0.0.0.0:7946", "at most 512", "listener", "handler", "5 bytes", "dial is -1ns", "suspicion mult is -1",
		"message bytes is 17825792", "pack messages is -1",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestOthersWithoutTheKeyStayOut(t *testing.T) {
	key := func(k string) func(*gossip.Config) { return func(c *gossip.Config) { c.Key = []byte(k) } }
	bubble(t, func(t *testing.T, f *fabric) {
		m1 := f.start(t, "m1", "10.0.0.1:7946", key("0123456789abcdef"))
		m2 := f.start(t, "m2", "10.0.0.2:7946", key("0123456789abcdef"))
		m3 := f.start(t, "m3", "10.0.0.3:7946", key("fedcba9876543210"))
		m4 := f.start(t, "m4", "10.0.0.4:7946", nil)
		defer closeAll(t, m1, m2, m3, m4)
		join(t, m1, m2)
		got, err := m2.Request(t.Context(), "m1", []byte("secret"))
		require.NoError(t, err)
		require.Equal(t, "secret", string(got))
		for _, n := range []*node{m3, m4} {
			_, err := n.Join(t.Context(), []string{m1.address})
			require.Error(t, err)
		}
		require.Equal(t, []string{"m1", "m2"}, m1.living())
	})
}

// isolate cuts one address off from all others.
func isolate(address string) func(from, to string) bool {
	return func(from, to string) bool { return (from == address) != (to == address) }
}

// blocking makes a node hold every request until its context ends.
func blocking(c *gossip.Config) {
	c.Handler = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, errors.New("gave up")
	}
}

// ask sends a request without waiting.
func (n *node) ask(to string) <-chan error {
	outcome := make(chan error, 1)
	go func() {
		_, err := n.Request(context.Background(), to, []byte("q"))
		outcome <- err
	}()
	return outcome
}
