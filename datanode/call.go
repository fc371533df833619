package datanode

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// call is one request under way, with all the memory that it needs: the answer
// is a part of it.
type call struct {
	d    *DataNode
	ctx  context.Context
	from string
	r    *wire.SearchRequest

	job    job
	used   []*keptShard // the context of each shard; nil: the request has none
	answer wire.SearchAnswer
	task   task.Task

	why atomic.Pointer[error] // that the call was cancelled for

	fewTasks   [few]shardTask
	fewAnswers [few]wire.ShardAnswer
}

// few is how many shards of a search a node has at the most in most clusters.
const few = 2

func newCall(ctx context.Context, d *DataNode, from string, r *wire.SearchRequest) *call {
	c := &call{d: d, ctx: ctx, from: from, r: r}
	if n := len(r.Shards); n <= few {
		c.job.tasks, c.answer.Shards = c.fewTasks[:n], c.fewAnswers[:n]
	} else {
		c.job.tasks, c.answer.Shards = make([]shardTask, n), make([]wire.ShardAnswer, n)
	}
	c.job.most = r.Concurrency
	return c
}

// Names of the actions that shards are listed under, as OpenSearch's.
const (
	actionQuery  = "indices:data/read/search[phase/query]"
	actionScroll = "indices:data/read/search[phase/query/scroll]"
	actionOpen   = "indices:data/read/search[open_context]"
)

// headerOpaqueID is the header whose value a task shows.
const headerOpaqueID = "X-Opaque-Id"

// list enters the shards of the request into the list of tasks.
func (c *call) list() {
	tasks, r := c.d.config.Tasks, c.r
	if tasks == nil {
		return
	}
	s := task.Spec{Action: actionQuery, Count: len(r.Shards)}
	switch {
	case r.Phase == wire.OpenPoint:
		s.Action = actionOpen
	case r.Context != (wire.ContextID{}) && r.Phase == wire.Query:
		s.Action = actionScroll
	}
	if r.Task != 0 {
		s.Parent = task.ID{Node: c.from, Number: r.Task}
		if n := c.d.config.States().Node(c.from); n != nil {
			s.Parent.Node = n.ID
		}
	}
	for _, h := range r.Headers {
		if h.Name == headerOpaqueID {
			s.OpaqueID = h.Value
		}
	}
	tasks.Enter(c.ctx, &c.task, s, c)
}

func (c *call) unlist() {
	if c.d.config.Tasks != nil {
		c.task.End()
	}
}

// Describe implements [task.Work]. A request without shards is one task, too.
func (c *call) Describe(i int) string {
	if i >= len(c.r.Shards) {
		return ""
	}
	return "shardId[" + c.r.Shards[i].String() + "]"
}

// Cancel implements [task.Work].
func (c *call) Cancel(why error) {
	if c.ctx.Err() != nil || !c.why.CompareAndSwap(nil, &why) {
		return
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.job.rouse()
}

// ended returns why the call must not go on, or nil.
func (c *call) ended() error {
	var why error
	if cancelled := c.why.Load(); cancelled != nil {
		why = *cancelled
	} else if c.ctx.Err() != nil {
		why = context.Cause(c.ctx)
	} else {
		return nil
	}
	return fmt.Errorf("search %s on data node %s: %w", c.r.Search, c.d.config.Node, why)
}

// plan makes a task of each shard that is here, with its service time, and
// writes the failure of each that is not.
func (c *call) plan() {
	d, r := c.d, c.r
	state := d.config.States()
	s := stream(0)
	if r.ServiceTime < 0 && r.Phase != wire.OpenPoint {
		s = d.streamOf(c.from, r.Search)
	}
	if r.Context != (wire.ContextID{}) {
		c.used = make([]*keptShard, len(r.Shards))
	}
	var x *cluster.Index
	for i, shard := range r.Shards {
		if x == nil || x.Name != shard.Index {
			x = state.Index(shard.Index)
		}
		answer := &c.answer.Shards[i]
		answer.Shard, answer.Failure = shard, d.refusal(x, shard, r)
		if c.used != nil && answer.Failure == nil {
			c.used[i], answer.Failure = d.keep(r, shard, state)
		}
		if answer.Failure != nil || r.Phase == wire.OpenPoint {
			continue
		}
		t := &c.job.tasks[i]
		t.job, t.progress, t.service = &c.job, planned, r.ServiceTime
		if r.ServiceTime < 0 {
			from := x.ServiceTime
			if r.Service.Distribution != "" {
				from = r.Service
			}
			t.service = draw(from, stream(hashNumber(hashBytes(uint64(s), shard.Index), uint64(shard.Shard))))
		}
	}
}

// serve returns once every task is over, having told of those that were served.
func (c *call) serve() error {
	d, j := c.d, &c.job
	now := time.Now()
	d.mu.Lock()
	d.pool.submit(j, now)
	next := d.pool.advance(j, now)
	open := j.open > 0
	var timer *time.Timer
	if open {
		timer = d.sleepLocked(j)
		if c.why.Load() != nil || d.closed.Load() { // it came before anybody could be woken
			j.rouse()
		}
	}
	d.mu.Unlock()
	var err error
	if open {
		err = c.wait(timer, next)
	}
	c.tell()
	return err
}

// wait waits until no task is open. next is when the first running one is over.
// It gives the timer back.
func (c *call) wait(timer *time.Timer, next time.Time) error {
	d, j := c.d, &c.job
	for {
		var over <-chan time.Time
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
			over = timer.C
		}
		var err error
		select {
		case <-over:
		case <-j.wake:
			if err = c.ended(); err == nil && d.closed.Load() {
				err = ErrClosed
			}
		case <-c.ctx.Done():
			err = c.ended()
		}
		now := time.Now()
		d.mu.Lock()
		if err != nil {
			d.pool.abandon(j, now)
		} else {
			next = d.pool.advance(j, now)
		}
		if j.open == 0 {
			d.wakenLocked(j, timer)
			d.mu.Unlock()
			return err
		}
		d.mu.Unlock()
	}
}

// tell reports the tasks that were served to the end.
func (c *call) tell() {
	for i := range c.job.tasks {
		if c.job.tasks[i].progress == done {
			c.d.config.Completed(c.r.Group)
		}
	}
}

// fill writes what each task found, or that it was refused.
func (c *call) fill() {
	d, r, full := c.d, c.r, 0
	for i := range c.job.tasks {
		shard, answer := r.Shards[i], &c.answer.Shards[i]
		switch c.job.tasks[i].progress {
		case done:
			if c.used != nil && !c.used[i].point {
				*answer = find(shard, c.used[i].matches, c.used[i].taken, r.From+r.Size)
			} else {
				*answer = find(shard, placeOf(shard).matching(r.Query), 0, r.From+r.Size)
			}
		case refused:
			full++
			answer.Failure = cluster.Errorf(cluster.TooMany, "rejected execution of a search task of shard %v on node [%s]: all %d workers are busy and %d tasks wait", shard, d.config.Node, d.config.Workers, d.config.Queue)
		}
	}
	if full > 0 {
		d.config.Log.Debug("the queue was full", "search", r.Search, "group", r.Group, "rejected_tasks", full)
	}
}

// sleeper is what a call needs to wait. Each is used again: it costs more to
// make than the wait does.
type sleeper struct {
	timer *time.Timer // stopped
	wake  chan struct{}
}

// maxSpare bounds the sleepers that a node keeps.
const maxSpare = 1024

// sleepLocked gives a job what it needs to wait.
func (d *DataNode) sleepLocked(j *job) *time.Timer {
	j.place = len(d.asleep)
	d.asleep = append(d.asleep, j)
	last := len(d.spare) - 1
	if last < 0 {
		timer := time.NewTimer(cluster.MaxServiceTime)
		timer.Stop()
		j.wake = make(chan struct{}, 1)
		return timer
	}
	s := d.spare[last]
	d.spare[last] = sleeper{}
	d.spare = d.spare[:last]
	j.wake = s.wake
	return s.timer
}

// wakenLocked takes it back: no one can wake the job from now on.
func (d *DataNode) wakenLocked(j *job, timer *time.Timer) {
	last := len(d.asleep) - 1
	d.asleep[j.place] = d.asleep[last]
	d.asleep[j.place].place = j.place
	d.asleep[last] = nil
	d.asleep = d.asleep[:last]
	timer.Stop() // from Go 1.23 on nothing stale stays in its channel
	select {
	case <-j.wake:
	default:
	}
	if len(d.spare) < maxSpare {
		d.spare = append(d.spare, sleeper{timer, j.wake})
	}
	j.wake = nil
}
