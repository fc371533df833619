package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/gossip"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/replica"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/netsim"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// world is one run, from the inside of its bubble.
type world struct {
	file     *scenario.File // with defaults, as it stands under the profile
	options  Options
	given    uint64 // the seed
	seed     stream
	switches wlm.Switches
	dir      string // of Bolt files
	programs *programs
	body     func(*Cluster)                // of [Drive]; nil: none
	said     atomic.Pointer[scenario.File] // file, with the steps that the body began
	orders   chan order                    // from the body to the driver

	holding  bool // nodes have holds
	starving bool // nodes stand behind gates
	delaying bool // steps are slowed
	parking  bool // a search may have to wait before it is admitted

	net      *netsim.Network
	search   *netsim.Search
	canaries canaries
	zero     time.Time // time 0 of the file

	mu      sync.Mutex
	members []*member      // in order of their first start
	lives   map[string]int // starts so far, by name

	ctx     context.Context // of all clients; ends when the world gives up waiting
	giveUp  context.CancelFunc
	work    sync.WaitGroup // goroutines of the world that end by themselves
	clients sync.WaitGroup // requests and loads
	faults  faults
	ids     names
	healed  chan struct{} // closed when everything heals
	worse   linkStack
	lines   links // of the clients of steps
	left    departures
	scrolls scrolls
	points  points
	answers answers
	tally   tally // of the searches of steps
	loads   []*load
	record  recorder
	peaks   *peaks // nil: nobody asks
	failed  failures
}

// run starts a goroutine that the world waits for at its end.
func (w *world) run(f func()) {
	w.work.Add(1)
	go func() {
		defer w.work.Done()
		f()
	}()
}

// client starts a goroutine of a client, which the end phase waits for.
func (w *world) client(f func()) {
	w.clients.Add(1)
	go func() {
		defer w.clients.Done()
		f()
	}()
}

// now returns the time since time 0 of the file.
func (w *world) now() time.Duration { return time.Since(w.zero) }

// event records an event at this moment.
func (w *world) event(e history.Event) { w.record.event(e) }

// sleepUntil waits for a time of the file; one that has passed costs nothing.
func (w *world) sleepUntil(at time.Duration) {
	if d := at - w.now(); d > 0 {
		time.Sleep(d)
	}
}

// build makes the cluster and everything that exists from the start.
func (w *world) build() error {
	link := w.file.Cluster.Network
	search, err := netsim.NewSearch([]byte(w.canaries.prefix), nil)
	if err != nil {
		return err
	}
	w.search = search
	faults := netsim.Faults{Latency: netRange(*link.Latency), Loss: link.Loss, Duplicate: link.Duplicate, Reorder: link.Reorder}
	if w.options.explored != nil {
		faults = netsim.Faults{Latency: netsim.Range{Min: 1, Max: 1}}
	}
	w.net, err = netsim.New(netsim.Config{Seed: w.seed.named("network").seed(), Link: faults, Taps: []netsim.Tap{search}})
	if err != nil {
		return err
	}
	if err := w.startMembers(); err != nil {
		return err
	}
	if err := w.awaitReady(); err != nil {
		return err
	}
	return w.furnish()
}

func (w *world) startMembers() error {
	for i := range w.file.Cluster.Managers {
		w.members = append(w.members, w.first("m", i, true))
	}
	for i := range w.file.Cluster.Data {
		w.members = append(w.members, w.first("d", i, false))
	}
	for _, m := range w.members {
		if err := m.start(); err != nil {
			return err
		}
	}
	return nil
}

// first makes the place of the (i+1)th node of a role.
func (w *world) first(role string, i int, founder bool) *member {
	name := role + strconv.Itoa(i+1)
	return w.newMember(name, name, founder)
}

// nodeNames are the names of all members, each once, in order of their first
// start.
func (w *world) nodeNames() []string {
	var names []string
	for _, m := range w.list() {
		if !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	return names
}

// founders are the voters of the new cluster.
func (w *world) founders() []replica.Server {
	var servers []replica.Server
	for _, m := range w.list() {
		if m.founder {
			servers = append(servers, replica.Server{Name: m.name, Address: m.raftAddress(), Voter: true})
		}
	}
	return servers
}

// seedsOf are the gossip addresses that a member joins: those of every earlier
// member at its first start, of all others later.
func (w *world) seedsOf(m *member) []string {
	var seeds []string
	for _, other := range w.list() {
		if other == m {
			if m.lives == 0 {
				break
			}
			continue
		}
		if seeds = append(seeds, other.gossipAddress()); len(seeds) == maxSeeds {
			break
		}
	}
	return seeds
}

// maxSeeds bounds the seeds of a member. Joining through one alone has left a
// node unknown to others; through all, the start of a hundred nodes would cost
// more than minutes of their life.
const maxSeeds = 10

func (w *world) settings() cluster.SettingsChange {
	change := cluster.SettingsChange{Persistent: map[string]*string{}}
	for key, value := range w.file.Cluster.Settings {
		text := string(value)
		change.Persistent[key] = &text
	}
	return change
}

// list returns the members in order of their first start.
func (w *world) list() []*member {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.members)
}

func (w *world) add(m *member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members = append(w.members, m)
}

// member returns the member of a name, or nil. Of two with one name it is the
// one that is up, or else the first.
func (w *world) member(name string) *member {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found *member
	for _, m := range w.members {
		if m.name == name && (found == nil || found.current.Load() == nil && m.current.Load() != nil) {
			found = m
		}
	}
	return found
}

// leader returns the member that leads at this moment, or nil.
func (w *world) leader() *member {
	var leader *member
	var newest uint64
	for _, m := range w.list() {
		l := m.current.Load()
		if l == nil {
			continue
		}
		if term, leads := l.node.Leading(); leads && (leader == nil || term > newest) {
			leader, newest = m, term
		}
	}
	return leader
}

// resolve returns the members that a step names: one, the leader, or all.
func (w *world) resolve(name string) []*member {
	switch name {
	case scenario.All:
		return w.list()
	case scenario.Leader:
		if m := w.leader(); m != nil {
			return []*member{m}
		}
		return nil
	}
	if m := w.member(name); m != nil {
		return []*member{m}
	}
	return nil
}

// awaitReady waits until every member has caught up and every data node is in
// the state.
func (w *world) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.settleBound())
	defer cancel()
	for _, m := range w.list() {
		if err := m.current.Load().node.Ready(ctx); err != nil {
			return fmt.Errorf("node %s was not ready within %v of its start: %w", m.name, w.settleBound(), err)
		}
	}
	return nil
}

// furnish makes the indices, groups and rules of the file.
func (w *world) furnish() error {
	n := w.members[0].current.Load().node
	for _, name := range slices.Sorted(maps.Keys(w.file.Cluster.Indices)) {
		x := w.file.Cluster.Indices[name]
		command := cluster.CreateIndex{Name: name, UUID: w.ids.next("index", name), Shards: x.Shards, ServiceTime: x.ServiceTime.Cluster(), CreatedAt: n.Now().UnixMilli()}
		if _, err := w.propose(n, &command); err != nil {
			return fmt.Errorf("index %s: %w", name, err)
		}
	}
	for i := range w.file.Groups {
		if err := w.create(n, &w.file.Groups[i]); err != nil {
			return fmt.Errorf("group %s: %w", w.file.Groups[i].Name, err)
		}
	}
	for i := range w.file.Rules {
		r := &w.file.Rules[i]
		if err := w.putRule(n, r); err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	for _, m := range w.list() {
		m.current.Load().node.Coordinator().RefreshRules()
	}
	return nil
}

// tearDown closes everything and waits until nothing is left.
func (w *world) tearDown() error {
	w.giveUp()
	var closing sync.WaitGroup
	members := w.list()
	errs := make([]error, len(members))
	for i, m := range members {
		closing.Go(func() { errs[i] = m.close() })
	}
	closing.Wait()
	w.work.Wait()
	w.clients.Wait()
	if w.net != nil {
		errs = append(errs, w.net.Close())
	}
	time.Sleep(gossip.Timings{}.Linger())
	return errors.Join(errs...)
}

// nextLife numbers the lives of a name, from 1 on. Two machines under one name
// are told apart by it.
func (w *world) nextLife(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives[name]++
	return w.lives[name]
}

// hooks are what sees the steps of a life, in order: the record first, so that
// a delay or a hold shows between two events and not before both.
func (w *world) hooks(l *life) []probe.Hook {
	var hooks []probe.Hook
	if w.record.on() {
		hooks = append(hooks, l)
	}
	if w.peaks != nil {
		hooks = append(hooks, w.peaks)
	}
	if w.delaying {
		hooks = append(hooks, &delays{w: w, node: l.m.name, seed: l.m.seed.named("delays")})
	}
	if x := w.options.explored; x != nil {
		hooks = append(hooks, x.Hook)
	}
	return hooks
}
