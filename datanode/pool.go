package datanode

import (
	"time"

	"github.com/wlmsim/wlmsim/internal/chain"
)

// progress is where a task stands.
type progress uint8

const (
	absent  progress = iota // the shard is not here, no worker is asked
	planned                 // not handed in yet
	waiting                 // in the queue
	running                 // on a worker until ends
	done                    // served to the end
	refused                 // the queue was full
)

// shardTask is one shard of one search.
type shardTask struct {
	job      *job
	service  time.Duration
	ends     time.Time // while running
	progress progress
	place    chain.Place[shardTask] // in the queue, while waiting
}

// job is the tasks of one search. Its fields belong to the pool's lock.
type job struct {
	tasks []shardTask
	most  int           // tasks that may be open at once; 0: any number
	next  int           // the first task that was not handed in
	open  int           // tasks that wait or run
	wake  chan struct{} // capacity 1, for whoever waits; nil: nobody does yet, or any more
	place int           // among those asleep, while somebody waits
}

// rouse lets whoever waits for the job look again.
func (j *job) rouse() {
	select {
	case j.wake <- struct{}{}:
	default: // told already
	}
}

// pool is a number of workers with a queue before them.
// It reads no clock and takes no lock; its owner does both.
type pool struct {
	workers, places int

	active int
	queue  chain.List[shardTask]

	completed, rejected, cancelled uint64
}

// submit hands in the tasks of a job that are planned, as many as may be open
// at once.
func (p *pool) submit(j *job, now time.Time) {
	for ; j.next < len(j.tasks) && (j.most == 0 || j.open < j.most); j.next++ {
		t := &j.tasks[j.next]
		switch {
		case t.progress != planned:
		case p.active < p.workers:
			j.open++
			p.start(t, now)
		case p.queue.Len() < p.places:
			j.open++
			t.progress = waiting
			p.queue.Add(t, &t.place)
		default:
			t.progress = refused
			p.rejected++
		}
	}
}

// start puts a task on a free worker. One that costs no time is over at once.
func (p *pool) start(t *shardTask, now time.Time) {
	p.active++
	t.progress, t.ends = running, now.Add(t.service)
	if t.service <= 0 {
		p.finish(t)
	}
}

func (p *pool) finish(t *shardTask) {
	p.active--
	p.completed++
	t.progress = done
	t.job.open--
}

// advance ends the tasks of a job that are over by now and gives their workers
// to those that wait. It returns when the next task of the job is over, the
// zero time if none runs.
func (p *pool) advance(j *job, now time.Time) (next time.Time) {
	for i := range j.tasks {
		t := &j.tasks[i]
		if t.progress == running && !t.ends.After(now) {
			p.finish(t)
			// From the instant the worker was free, not from now: on a wall
			// clock the owner of the task may wake late.
			p.dispatch(t.ends)
		}
	}
	p.submit(j, now)
	for i := range j.tasks {
		if t := &j.tasks[i]; t.progress == running && (next.IsZero() || t.ends.Before(next)) {
			next = t.ends
		}
	}
	return next
}

// dispatch starts waiting tasks while workers are free.
func (p *pool) dispatch(now time.Time) {
	for p.active < p.workers && p.queue.Len() > 0 {
		t := p.queue.First()
		p.queue.Remove(&t.place)
		p.start(t, now)
		t.job.rouse()
	}
}

// abandon takes every open task of a job out.
func (p *pool) abandon(j *job, now time.Time) {
	for i := range j.tasks {
		switch t := &j.tasks[i]; t.progress {
		case running:
			p.active--
		case waiting:
			p.queue.Remove(&t.place)
		case planned:
		default:
			continue
		}
		j.tasks[i].progress = absent
		p.cancelled++
	}
	j.open = 0
	p.dispatch(now)
}
