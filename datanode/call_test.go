package datanode_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/datanode"
)

// A search that was cancelled gives its place in the queue up, and what it
// waited with to the next one.
func TestACancelledSearchGivesUpItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := task.New("d1-id")
		logs := stateWith(t, "logs", 2, cluster.ServiceTime{})
		d := datanode.New(datanode.Config{Node: "d1", Workers: 1, Queue: 9, States: func() *cluster.State { return logs }, Tasks: tasks})
		defer d.Close()
		began := time.Now()
		ended := make([]string, 4)
		search := func(i int) {
			_, err := d.Search(t.Context(), "m1", request(fmt.Sprint(i), time.Second, 0))
			ended[i] = fmt.Sprintf("%v %q", time.Since(began), cluster.KindOf(err))
		}
		go search(0)
		synctest.Wait()
		go search(1) // waits for the worker
		time.Sleep(500 * time.Millisecond)
		waiting := tasks.List(task.Filter{})[1]
		require.False(t, waiting.Cancelled)
		require.Equal(t, "shardId[[logs][0]]", waiting.Description)
		for range 2 { // the second time it is gone, or about to go
			tasks.Cancel(t.Context(), task.Filter{Number: waiting.ID.Number}, "enough", false)
		}
		synctest.Wait()
		require.Equal(t, 1, tasks.Len())
		go search(2)
		synctest.Wait()
		go search(3)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []string{`1s ""`, `500ms "task_cancelled_exception"`, `2s ""`, `3s ""`}, ended)
		require.Equal(t, datanode.Stats{Completed: 3, Cancelled: 1}, d.Stats())
	})
}

// Where both come, the search ends for the one that came first.
func TestASearchEndsForTheFirstReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := task.New("d1-id")
		logs := stateWith(t, "logs", 1, cluster.ServiceTime{})
		d := open(t, logs, func(c *datanode.Config) { c.Tasks = tasks })
		defer d.Close()
		done := make(chan error, 1)
		go func() {
			_, err := d.Search(t.Context(), "m1", request("s", time.Hour, 0))
			done <- err
		}()
		synctest.Wait()
		tasks.Cancel(t.Context(), task.Filter{}, "one", false)
		tasks.Cancel(t.Context(), task.Filter{}, "two", false)
		require.ErrorContains(t, <-done, "cancelled task with reason: one")
	})
}

// What is found by more shards than a search usually has on a node.
func TestManyShardsOfASearchAreServed(t *testing.T) {
	logs := stateWith(t, "logs", 20, cluster.ServiceTime{})
	d := open(t, logs, nil)
	for n := range 10 {
		var shards []int
		for i := range n {
			shards = append(shards, 2*i)
		}
		answer, err := d.Search(t.Context(), "m1", request("s", 0, shards...))
		require.NoError(t, err)
		require.Len(t, answer.Shards, n)
		for i, s := range answer.Shards {
			require.Equal(t, wire.ShardID{Index: "logs", Shard: 2 * i}, s.Shard)
			require.Nil(t, s.Failure)
			require.Positive(t, s.Searched)
		}
	}
}

// A message without shards has one task, of which there is nothing to say.
func TestASearchOfNoShardsIsListed(t *testing.T) {
	tasks := task.New("d1-id")
	logs := stateWith(t, "logs", 1, cluster.ServiceTime{})
	var seen []task.Info
	hook := probe.HookFunc(func(probe.Event) { seen = append(seen, tasks.List(task.Filter{})...) })
	d := open(t, logs, func(c *datanode.Config) { c.Tasks, c.Probe = tasks, probe.New("d1", hook) })
	_, err := d.Search(t.Context(), "m1", request("s", 0))
	require.NoError(t, err)
	require.Len(t, seen, 1)
	require.Empty(t, seen[0].Description)
}
