package replica_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/replica"
)

func bolt(t testing.TB) func(string) *replica.Store {
	return func(string) *replica.Store { return replica.Bolt(t.TempDir()) }
}

// together opens all nodes at once, as processes that start side by side, and
// returns when all know one leader.
func (c *testCluster) together(bootstrap []replica.Server) {
	var opened sync.WaitGroup
	for _, name := range c.names {
		opened.Go(func() { c.nodes[name].open(bootstrap) })
	}
	opened.Wait()
	c.leader()
}

// BenchmarkPutOnEveryNode is one change until each of three nodes, Bolt over
// loopback, has delivered it. Budget: 20 ms.
func BenchmarkPutOnEveryNode(b *testing.B) {
	c := newCluster(b, nil, 3, bolt(b))
	c.together(c.servers)
	defer c.close()
	c.propose(create("g"))
	version, stamp := uint64(1), int64(0)
	for b.Loop() {
		version++
		stamp++
		c.propose(update("g", stamp))
		for _, name := range c.names {
			c.nodes[name].version(version)
		}
		c.mu.Lock()
		for _, name := range c.names {
			c.nodes[name].delivered = nil
		}
		c.mu.Unlock()
	}
}

// BenchmarkLeaderOfANewCluster is three nodes, Bolt over loopback, from Open to
// a leader that all know, the files' making included.
func BenchmarkLeaderOfANewCluster(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		c := newCluster(b, nil, 3, bolt(b))
		b.StartTimer()
		c.together(c.servers)
		b.StopTimer()
		c.close()
		b.StartTimer()
	}
}

// BenchmarkLeaderAfterARestart is the same for nodes that have their files.
// Budget: about 20 ms.
func BenchmarkLeaderAfterARestart(b *testing.B) {
	c := newCluster(b, nil, 3, bolt(b))
	c.together(c.servers)
	c.propose(create("g"))
	for b.Loop() {
		b.StopTimer()
		c.close()
		for _, name := range c.names {
			c.nodes[name].listen(c.nodes[name].address)
		}
		b.StartTimer()
		c.together(nil)
	}
	c.close()
}

// BenchmarkWriteAndSync is the disk alone: what one fsync costs here. A change
// waits for four, one after another.
func BenchmarkWriteAndSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	require.NoError(b, err)
	defer f.Close()
	block := make([]byte, 4096)
	for b.Loop() {
		_, err := f.WriteAt(block, 0)
		require.NoError(b, err)
		require.NoError(b, f.Sync())
	}
}
