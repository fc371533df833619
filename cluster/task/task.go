package task

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/internal/chain"
)

// Cancelled is the kind of the error that ends a task which somebody cancelled.
const Cancelled cluster.Kind = "task_cancelled_exception"

// NewCancelled returns the error of a task that was cancelled, in OpenSearch's
// words.
func NewCancelled(reason string) *cluster.Error {
	return cluster.Errorf(Cancelled, "cancelled task with reason: %s", reason)
}

// ID names a task in the whole cluster. The zero ID names none.
type ID struct {
	Node   string `json:"node"` // id of the node, not its name
	Number uint64 `json:"number"`
}

// IsZero says whether the id names no task.
func (id ID) IsZero() bool { return id == ID{} }

// String writes the id as OpenSearch does, node:number.
func (id ID) String() string { return id.Node + ":" + strconv.FormatUint(id.Number, 10) }

// ParseID reads what [ID.String] wrote; the error is the answer to a client.
func ParseID(text string) (ID, error) {
	at := strings.LastIndexByte(text, ':')
	if at > 0 {
		if n, err := strconv.ParseUint(text[at+1:], 10, 64); err == nil && n > 0 {
			return ID{text[:at], n}, nil
		}
	}
	return ID{}, cluster.Errorf(cluster.IllegalArgument, "malformed task id %s", text)
}

// Info is what is known of a task at one moment.
type Info struct {
	ID          ID            `json:"id"`
	Parent      ID            `json:"parent,omitzero"` // zero: none
	Action      string        `json:"action"`
	Description string        `json:"description,omitempty"`
	OpaqueID    string        `json:"opaque_id,omitempty"` // X-Opaque-Id of the client
	Started     int64         `json:"started"`             // epoch milliseconds
	Running     time.Duration `json:"running"`
	Cancelled   bool          `json:"cancelled,omitempty"` // its context has ended
}

// Filter chooses tasks. What is empty chooses all.
type Filter struct {
	Actions []string `json:"actions,omitempty"` // names, or patterns with '*'
	Number  uint64   `json:"number,omitempty"`
	Parent  ID       `json:"parent,omitzero"`
}

func (f *Filter) takes(t *Task, number uint64) bool {
	if f.Number != 0 && f.Number != number {
		return false
	}
	if !f.Parent.IsZero() && f.Parent != t.spec.Parent {
		return false
	}
	return len(f.Actions) == 0 || slices.ContainsFunc(f.Actions, func(p string) bool { return cluster.MatchPattern(p, t.spec.Action) })
}

// Spec describes work that begins.
type Spec struct {
	Action   string
	Parent   ID
	OpaqueID string
	// Count is how many tasks the work is listed as, which end together; 0: 1.
	Count int
	// Describe says in a few words what the i-th of them does; nil: nothing is
	// said. It is called when somebody lists the tasks, and must not block.
	Describe func(i int) string
}

// Work is work under way that knows by itself how to end; see [Registry.Enter].
type Work interface {
	// Describe is as [Spec.Describe].
	Describe(i int) string
	// Cancel is told that the work must end, and why. The first reason counts.
	// It must not block, and may be called after the work's end.
	Cancel(why error)
}

// Task is one piece of work under way. It is a context: that of the work.
type Task struct {
	context.Context
	registry *Registry
	stop     context.CancelCauseFunc // of Context; nil: work is told
	work     Work                    // nil: Context is the task's own
	spec     Spec
	first    uint64 // number of the first of spec.Count tasks
	started  time.Time

	// Guarded by the registry's lock.
	place     chain.Place[Task]
	cancelled bool
	over      chan struct{} // closed by End; nil while nobody waits for it
}

type taskKey struct{}

// Value implements [context.Context].
func (t *Task) Value(key any) any {
	if key == (taskKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// From returns the id of the task that a context belongs to; the zero ID if it
// belongs to none.
func From(ctx context.Context) ID {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t.ID()
}

// ID returns the task's id, of several the first one's; zero for a nil Task.
func (t *Task) ID() ID {
	if t == nil {
		return ID{}
	}
	return ID{t.registry.node, t.first}
}

// Registry lists the tasks of one node. Make it with [New].
type Registry struct {
	node string

	mu     sync.Mutex
	number uint64           // the last one given
	listed chain.List[Task] // the pieces of work under way, in order of the numbers
}

// New returns the registry of a node, whose id, not its name, is given.
func New(node string) *Registry { return &Registry{node: node} }

// Node returns the id of the registry's node.
func (r *Registry) Node() string { return r.node }

// Begin enters work and returns the context to do it under. The caller calls
// [Task.End] when it is over.
func (r *Registry) Begin(ctx context.Context, s Spec) (context.Context, *Task) {
	if r == nil {
		return ctx, nil
	}
	t := &Task{spec: s}
	t.Context, t.stop = context.WithCancelCause(ctx)
	r.enter(t)
	return t, t
}

// Enter is Begin for who needs no context of its own, and has the memory for
// the task, which must be new: w says what it does, in place of s.Describe, and
// is told when it is cancelled. ctx is only looked at, to say of the task that
// it is cancelled when ctx has ended. r must not be nil.
func (r *Registry) Enter(ctx context.Context, t *Task, s Spec, w Work) {
	t.Context, t.work, t.spec = ctx, w, s
	r.enter(t)
}

func (r *Registry) enter(t *Task) {
	t.registry, t.started = r, time.Now()
	if t.spec.Count == 0 {
		t.spec.Count = 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.first = r.number + 1
	r.number += uint64(t.spec.Count)
	r.listed.Add(t, &t.place)
}

// End takes the task out of the list.
func (t *Task) End() {
	if t == nil {
		return
	}
	r := t.registry
	r.mu.Lock()
	r.listed.Remove(&t.place)
	if t.over != nil {
		close(t.over)
		t.over = nil
	}
	r.mu.Unlock()
	if t.stop != nil {
		t.stop(context.Canceled) // frees what the context holds in its parent
	}
}

// cancel ends the task's context, or tells its work.
func (t *Task) cancel(why error) {
	if t.stop != nil {
		t.stop(why)
		return
	}
	t.registry.mu.Lock()
	t.cancelled = true
	t.registry.mu.Unlock()
	t.work.Cancel(why)
}

// describe says what a task does; "" if nothing is said.
func (t *Task) describe(number uint64) string {
	switch i := int(number - t.first); {
	case t.work != nil:
		return t.work.Describe(i)
	case t.spec.Describe != nil:
		return t.spec.Describe(i)
	}
	return ""
}

// isCancelled says whether the task was cancelled, or its context has ended.
func (t *Task) isCancelled() bool {
	t.registry.mu.Lock()
	defer t.registry.mu.Unlock()
	return t.cancelled || t.Err() != nil
}

// Len returns how many pieces of work are under way.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listed.Len()
}

// chosen is a task that a filter took.
type chosen struct {
	*Task
	number uint64
}

// choose returns the tasks that a filter takes, in order.
func (r *Registry) choose(f Filter) []chosen {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []chosen
	for t := range r.listed.All() {
		for number := t.first; number < t.first+uint64(t.spec.Count); number++ {
			if f.takes(t, number) {
				found = append(found, chosen{t, number})
			}
		}
	}
	return found
}

// List returns the tasks that a filter takes.
func (r *Registry) List(f Filter) []Info { return infos(r.choose(f)) }

func infos(found []chosen) []Info {
	list := make([]Info, len(found))
	for i, c := range found {
		list[i] = Info{
			ID: ID{c.registry.node, c.number}, Parent: c.spec.Parent, Action: c.spec.Action, OpaqueID: c.spec.OpaqueID,
			Started: c.started.UnixMilli(), Running: time.Since(c.started), Cancelled: c.isCancelled(),
			Description: c.describe(c.number),
		}
	}
	return list
}

// Cancel cancels the tasks that a filter takes and returns them. With wait it
// returns once they are over, or ctx is. Tasks that are listed as one piece of
// work end together.
func (r *Registry) Cancel(ctx context.Context, f Filter, reason string, wait bool) []Info {
	found := r.choose(f)
	why := NewCancelled(reason)
	for _, c := range found {
		c.cancel(why)
	}
	list := infos(found)
	for i := range found {
		if wait && !r.await(ctx, found[i].Task) {
			break
		}
	}
	return list
}

// await waits until a task is over and says whether it came to that.
func (r *Registry) await(ctx context.Context, t *Task) bool {
	r.mu.Lock()
	if !t.place.Listed() {
		r.mu.Unlock()
		return true
	}
	if t.over == nil {
		t.over = make(chan struct{})
	}
	over := t.over
	r.mu.Unlock()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// Check reports what is wrong with a filter that a client sent, or nil.
func (f Filter) Check() error {
	if len(f.Actions) > maxActions {
		return fmt.Errorf("%d actions are named: at most %d", len(f.Actions), maxActions)
	}
	return nil
}

// maxActions bounds the patterns of a filter, which are tried on every task
// under the registry's lock.
const maxActions = 100
