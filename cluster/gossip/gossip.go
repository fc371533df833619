package gossip

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// Gossip is one node's membership and messages.
type Gossip struct {
	cfg   Config
	life  string // this run's name to memberlist
	view  *view
	calls calls
	slots slots

	list      *memberlist.Memberlist // set once ready is closed
	transport *transport
	ready     chan struct{}

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	change chan struct{} // holds one: the view has changed
	owed   chan struct{} // holds one: a call waits

	settled atomic.Bool   // this node is part of a cluster: its name is its own
	refused chan struct{} // closed when the name is found taken

	mu      sync.Mutex
	closed  bool
	left    bool
	running sync.WaitGroup
	idle    []chan func() // of goroutines that wait for something to do; the last one came last
	leaving sync.WaitGroup
	seeds   []string       // addresses given to Join and never reached
	taken   error          // why refused is closed
	visits  map[string]int // joins of ours under way, by address
}

// Start opens a node that knows nobody yet. It owns cfg.Network from here on, also when it returns an error.
func Start(cfg Config) (*Gossip, error) {
	cfg = cfg.withDefaults(time.Now())
	if err := cfg.check(); err != nil {
		closeNetwork(cfg.Network)
		return nil, err
	}
	address, _ := parseAddress(cfg.Self.Address) // checked
	self := cfg.Self.clone()
	self.Alive, self.Address = true, address.String()

	g := &Gossip{
		cfg: cfg, life: life(self.Name, address, cfg.Life),
		calls: calls{open: make(map[uint64]*Call)}, slots: slots{most: cfg.Bounds.Handled},
		ready: make(chan struct{}), refused: make(chan struct{}),
		visits: make(map[string]int), change: make(chan struct{}, 1), owed: make(chan struct{}, 1),
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.view = newView(g.ctx, self, func() { signal(g.change) }, func() { g.spawn(g.loseCalls) })
	if err := g.open(address); err != nil {
		g.shut()
		g.cancel()
		g.running.Wait()
		return nil, err
	}
	g.spawn(g.tellChanges)
	g.spawn(g.checkSilent)
	g.spawn(g.rejoin)
	return g, nil
}

func (g *Gossip) open(address netip.AddrPort) error {
	g.transport = newTransport(g.cfg.Network, address, g.cfg.Timings, g.cfg.Log, g.view.refuses)
	list, err := memberlist.Create(g.libraryConfig())
	if err != nil {
		_ = g.transport.Shutdown()
		return fmt.Errorf("gossip: open %s: %w", g.cfg.Self.Name, err)
	}
	g.list = list
	close(g.ready)
	return nil
}

func closeNetwork(n Network) {
	if n.Listener != nil {
		_ = n.Listener.Close()
	}
	if n.Packets != nil {
		_ = n.Packets.Close()
	}
}

// libraryConfig is memberlist's LAN config with our timings, names and delegates. Compression is off: it costs more than
// everything else together.
func (g *Gossip) libraryConfig() *memberlist.Config {
	t := g.cfg.Timings
	c := memberlist.DefaultLANConfig()
	c.Name = g.life
	c.Transport = g.transport
	c.ProbeInterval, c.ProbeTimeout = t.ProbeInterval, t.ProbeTimeout
	c.SuspicionMult, c.AwarenessMaxMultiplier = t.SuspicionMult, maxScore
	c.GossipInterval, c.PushPullInterval, c.GossipToTheDeadTime = t.GossipInterval, t.PushPull, t.DeadMemory
	c.TCPTimeout = t.Stream
	c.EnableCompression = false
	c.SecretKey = g.cfg.Key
	c.Logger = libraryLog(g.cfg.Log)
	c.Delegate, c.Events, c.Alive, c.Merge, c.Ping = delegate{g}, delegate{g}, delegate{g}, delegate{g}, delegate{g}
	return c
}

// spawn runs f in a goroutine that Close waits for; it returns false, and runs nothing, once closed. The goroutine is one
// whose last f has returned, if there is one: a fresh one would pay for the growth of its stack on every message.
func (g *Gossip) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if last := len(g.idle) - 1; last >= 0 {
		g.idle[last] <- f // never waits: the channel is empty and holds one
		g.idle = g.idle[:last]
		return true
	}
	next := make(chan func(), 1)
	next <- f
	g.running.Go(func() { g.work(next) })
	return true
}

// work is the life of a goroutine that spawn started.
func (g *Gossip) work(next chan func()) {
	for f := range next {
		f()
		if !g.rest(next) {
			return
		}
	}
}

// maxIdle bounds the goroutines that wait for something to do.
const maxIdle = 256

// rest says whether the goroutine is to wait for something to do.
func (g *Gossip) rest(next chan func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || len(g.idle) >= maxIdle {
		return false
	}
	g.idle = append(g.idle, next)
	return true
}

// signal puts a token into a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (g *Gossip) tellChanges() {
	for {
		select {
		case <-g.change:
			if g.cfg.OnChange != nil {
				g.cfg.OnChange()
			}
		case <-g.ctx.Done():
			return
		}
	}
}

// Members returns every known member by name: this node, the living, and the dead that are remembered.
func (g *Gossip) Members() []Member { return g.view.members() }

// Member returns the member of a name, and whether there is one.
func (g *Gossip) Member(name string) (m Member, known bool) { return g.view.member(name) }

// Alive reports whether a member of that name is known and alive in this node's view.
func (g *Gossip) Alive(name string) bool { return g.view.isAlive(name) }

// UpdateSelf changes what this node says of itself: ID, roles, Raft and HTTP address. The name and the address of m are
// ignored. It does not wait: the news travels with gossip. A node that was closed, has left or was refused its name has
// nothing to say: ErrClosed or ErrNameTaken. (memberlist forgets itself some time after it left, and would panic.)
func (g *Gossip) UpdateSelf(m Member) error {
	if err := g.parted(); err != nil {
		return err
	}
	err := g.view.updateSelf(func(self *Member) error {
		self.ID, self.Roles, self.Raft, self.HTTP = m.ID, m.clone().Roles, m.Raft, m.HTTP
		return checkMeta(*self)
	})
	if err != nil {
		return err
	}
	// The only error there is says that gossip has not taken the news within the time, here none.
	_ = g.list.UpdateNode(time.Nanosecond)
	return nil
}

// Request sends body to a member and waits for its handler's answer. Errors: ErrUnknownMember, ErrGone, ErrFull, ErrBusy,
// ErrTooLarge, ErrClosed, a *RemoteError, or ctx's; which of them say that nothing was done stands at each. When ctx ends,
// the handler's context is ended too. A request to this node itself is handled here, with the same results.
func (g *Gossip) Request(ctx context.Context, to string, body []byte) ([]byte, error) {
	if err := g.sendable(ctx, body); err != nil {
		return nil, err
	}
	return wait(ctx, func(outcome func([]byte, error)) (*Call, error) { return g.begin(to, body, outcome) })
}

// Ask is Request for who has no goroutine to wait with: it returns at once. An error is the outcome; without one, outcome
// is called exactly once with what Request would return. It must not block: it runs where the answer was read, at times
// before Ask returns. In place of a context there is [Call.Cancel].
func (g *Gossip) Ask(to string, body []byte, outcome func([]byte, error)) (*Call, error) {
	if err := g.sendable(context.Background(), body); err != nil {
		return nil, err
	}
	return g.begin(to, body, outcome)
}

func (g *Gossip) begin(to string, body []byte, outcome func([]byte, error)) (*Call, error) {
	if to == g.cfg.Self.Name {
		return g.askSelf(body, outcome)
	}
	p, session, err := g.view.target(to)
	if err != nil {
		return nil, err
	}
	return g.ask(session, p, kindRequest, body, outcome)
}

// wait asks and waits for the outcome, or until ctx ends.
func wait(ctx context.Context, ask func(outcome func([]byte, error)) (*Call, error)) ([]byte, error) {
	done := make(chan result, 1)
	c, err := ask(func(body []byte, err error) { done <- result{body, err} })
	if err != nil {
		return nil, err
	}
	select {
	case r := <-done:
		return r.body, r.err
	case <-ctx.Done():
		c.Cancel()
		return nil, ctx.Err()
	}
}

// Send sends body to a member without waiting for anything. A nil error means that it was queued. Errors: ErrUnknownMember,
// ErrGone, ErrFull, ErrTooLarge, ErrClosed.
func (g *Gossip) Send(to string, body []byte) error {
	if err := g.sendable(context.Background(), body); err != nil {
		return err
	}
	if to == g.cfg.Self.Name {
		g.serveOneWay(to, bytes.Clone(body))
		return nil
	}
	p, _, err := g.view.target(to)
	if err != nil {
		return err
	}
	return g.post(p, item{frame: frame{kind: kindSend, body: body}})
}

func (g *Gossip) sendable(ctx context.Context, body []byte) error {
	switch {
	case g.ctx.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case len(body) > g.cfg.Bounds.MessageBytes:
		return g.tooLarge(body)
	}
	return nil
}

func (g *Gossip) tooLarge(body []byte) error {
	return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(body), g.cfg.Bounds.MessageBytes)
}

// ask sends a frame that wants an answer.
func (g *Gossip) ask(session context.Context, to *peer, k kind, body []byte, outcome func([]byte, error)) (*Call, error) {
	to.waiting.Add(1)
	c := g.calls.start(&Call{g: g, to: to, life: to.life, session: session, outcome: outcome})
	err := g.post(to, item{frame: frame{kind: k, id: c.id, body: body}, call: c})
	switch {
	case err != nil && c.end():
		return nil, err
	case session.Err() != nil: // whoever ended it may not have seen the call
		c.lost()
	}
	signal(g.owed)
	return c, nil
}

// Cancel gives a call up: the peer's handler is told, unless the request has not been sent yet or the outcome was there
// before. It does not block.
func (c *Call) Cancel() {
	if !c.end() {
		return
	}
	if c.to != nil && !c.drop() {
		c.g.reply(c.to, frame{kind: kindCancel, id: c.id})
	}
	c.outcome(nil, context.Canceled)
	if c.stop != nil {
		c.stop()
	}
}

// lost is the outcome of a call whose peer is gone.
func (c *Call) lost() {
	sent := !c.drop()
	if c.to == nil || c.g.ctx.Err() != nil {
		c.finish(result{err: ErrClosed})
		return
	}
	c.finish(result{err: goneError(c.to.name, sent, nil)})
}

// loseCalls ends the calls of sessions that are over.
func (g *Gossip) loseCalls() {
	for _, c := range g.calls.orphans() {
		c.lost()
	}
}

// askSelf handles a request of this node to itself.
func (g *Gossip) askSelf(body []byte, outcome func([]byte, error)) (*Call, error) {
	self := g.cfg.Self.Name
	if !g.slots.take() {
		return nil, fmt.Errorf("%w: %s", ErrBusy, self)
	}
	ctx, stop := context.WithCancel(g.ctx)
	c := g.calls.start(&Call{g: g, session: ctx, stop: stop, outcome: outcome})
	body = bytes.Clone(body)
	ran := g.spawn(func() {
		defer g.slots.free()
		defer stop()
		out, err := g.cfg.Handler(ctx, self, body)
		switch f := g.outcome(c.id, bytes.Clone(out), err); {
		case g.ctx.Err() != nil: // and so the handler's context was
			c.lost()
		case f.kind == kindFailure:
			c.finish(result{err: &RemoteError{Member: self, Text: string(f.body)}})
		default:
			c.finish(result{body: f.body})
		}
	})
	if !ran {
		stop()
		g.slots.free()
		if c.end() {
			return nil, ErrClosed
		}
	}
	return c, nil
}

// checkSilent dials the address of every member that owes an answer and was sent nothing for a while: if it refuses, or
// another life answers there, the calls fail. It asks about calls that wait for very long. It sleeps while no call waits.
func (g *Gossip) checkSilent() {
	every := g.cfg.Timings.Check
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-g.owed:
		case <-g.ctx.Done():
			return
		}
		for owing := true; owing; {
			timer.Reset(every)
			select {
			case <-timer.C:
			case <-g.ctx.Done():
				return
			}
			owing = g.checkOwing(every)
		}
	}
}

func (g *Gossip) checkOwing(every time.Duration) bool {
	peers := g.view.owing()
	for _, p := range peers {
		for _, id := range g.calls.old(p.life, g.cfg.Timings.lost()) {
			g.reply(p, frame{kind: kindOwed, id: id})
		}
		if idle, sent := p.out.idle(); idle && time.Since(sent) >= every {
			g.reply(p, frame{kind: kindCheck})
		}
	}
	return len(peers) > 0
}

// Leave tells the others that this node leaves for good, so that they forget it, and waits until gossip has passed that
// on, at most Timings.Broadcast or until ctx ends. Only Close may follow, and waits for the rest of that time.
func (g *Gossip) Leave(ctx context.Context) error {
	for _, p := range g.view.listed() {
		g.reply(p, frame{kind: kindLeaving})
	}
	if !g.depart() {
		return ErrClosed
	}
	done := make(chan error, 1)
	if !g.spawn(func() { done <- g.withdraw() }) {
		g.leaving.Done()
		return ErrClosed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// depart notes that this node leaves, unless it is closed: Close waits for the withdraw that follows.
func (g *Gossip) depart() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.left = true
	g.leaving.Add(1)
	return true
}

// withdraw has memberlist leave, which it must not be asked to once it is shut down.
func (g *Gossip) withdraw() error {
	defer g.leaving.Done()
	return g.list.Leave(g.cfg.Timings.Broadcast)
}

// Close ends the node and waits for everything it started, handlers too. Without a Leave the others find it dead. Calling
// it again does nothing.
func (g *Gossip) Close() error {
	if g.shut() {
		return nil
	}
	g.leaving.Wait()
	g.cancel()
	g.loseCalls()
	err := g.list.Shutdown()
	g.transport.open.Wait()
	g.running.Wait()
	return err
}

// shut has nothing more spawned, ends the goroutines that wait for something to do, and says whether it was done before.
func (g *Gossip) shut() (before bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, g.closed = g.closed, true
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
	return before
}
