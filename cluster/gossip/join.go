package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// maxDials bounds the joins under way at a time.
const maxDials = 8

// Join meets the nodes at these addresses, "host:port" each (this node's own is left out), and returns how many it met.
// Host names are looked up, so in a bubble give numbers. Meeting one is enough to join, but give every address that is
// known, as the others advertise it: only there can ErrNameTaken be found out. Addresses that were not met are tried again
// every Timings.Rejoin. An error means that none was met, or ErrNameTaken, or that ctx ended first.
func (g *Gossip) Join(ctx context.Context, addresses []string) (int, error) {
	addresses = g.worthMeeting(addresses)
	if err := g.remember(addresses); err != nil {
		return 0, err
	}
	type met struct {
		count int
		err   error
	}
	done := make(chan met, 1)
	ran := g.spawn(func() {
		n, err := g.meet(ctx, addresses)
		done <- met{n, err}
	})
	if !ran {
		return 0, ErrClosed
	}
	select {
	case m := <-done:
		return m.count, m.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (g *Gossip) worthMeeting(addresses []string) []string {
	var out []string
	for _, a := range addresses {
		if a != g.view.selfAddress() && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// meet dials the addresses, a few at a time.
func (g *Gossip) meet(ctx context.Context, addresses []string) (int, error) {
	errs := make([]error, len(addresses))
	var wait sync.WaitGroup
	gate := make(chan struct{}, maxDials)
	for i, address := range addresses {
		gate <- struct{}{}
		wait.Go(func() {
			defer func() { <-gate }()
			if errs[i] = errors.Join(ctx.Err(), g.ctx.Err()); errs[i] == nil {
				errs[i] = g.meetOne(address)
			}
			if errs[i] == nil {
				g.reached(address)
			}
		})
	}
	wait.Wait()
	if err := g.nameTaken(); err != nil {
		return 0, err
	}
	met := 0
	for _, err := range errs {
		if err == nil {
			met++
		}
	}
	if met > 0 {
		g.settled.Store(true)
		return met, nil
	}
	return 0, errors.Join(errs...)
}

// meetOne exchanges views with one address, or with the first that answers of those that a host name stands for.
func (g *Gossip) meetOne(address string) error {
	numbers, err := g.resolveHost(address)
	if err != nil {
		return err
	}
	for _, number := range numbers {
		g.visit(number, 1)
		_, err = g.list.Join([]string{number})
		g.visit(number, -1)
		if err == nil {
			return nil
		}
	}
	return err
}

// resolveHost looks a host name up, here rather than in memberlist, which asks name servers on its own.
func (g *Gossip) resolveHost(address string) ([]string, error) {
	if _, err := netip.ParseAddrPort(address); err == nil {
		return []string{address}, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("gossip: address %q, want host:port", address)
	}
	ips, err := net.DefaultResolver.LookupNetIP(g.ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("gossip: look up %q: %w", host, err)
	}
	var numbers []string
	for _, ip := range ips {
		numbers = append(numbers, net.JoinHostPort(ip.Unmap().String(), port))
	}
	return numbers, nil
}

// visit notes where joins of ours are under way.
func (g *Gossip) visit(address string, by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.visits[address] += by; g.visits[address] == 0 {
		delete(g.visits, address)
	}
}

// met takes in that there is another member. Unless a join of ours may have brought it, somebody has joined this node, so
// its name is its own.
func (g *Gossip) met() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.visits) == 0 {
		g.settled.Store(true)
	}
}

// visiting reports whether a join of ours at one of these nodes is under way.
func (g *Gossip) visiting(nodes []*memberlist.Node) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(nodes, func(n *memberlist.Node) bool { return g.visits[n.Address()] > 0 })
}

// remember notes seeds, unless there can be no join any more.
func (g *Gossip) remember(addresses []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.partedLocked(); err != nil {
		return err
	}
	for _, a := range addresses {
		if !slices.Contains(g.seeds, a) && len(g.seeds) < g.cfg.Bounds.Members {
			g.seeds = append(g.seeds, a)
		}
	}
	return nil
}

// parted returns why this node is no part of any cluster any more, or nil.
func (g *Gossip) parted() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.partedLocked()
}

func (g *Gossip) partedLocked() error {
	switch {
	case g.taken != nil:
		return g.taken
	case g.closed || g.left:
		return ErrClosed
	}
	return nil
}

// reached strikes out a seed: from now on its members are remembered, not the seed.
func (g *Gossip) reached(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seeds = slices.DeleteFunc(g.seeds, func(s string) bool { return s == address })
}

func (g *Gossip) nameTaken() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken
}

// refuse ends this node's part in the cluster: another answers under its name.
func (g *Gossip) refuse(address string) error {
	err := fmt.Errorf("%w: %s answers at %s", ErrNameTaken, g.cfg.Self.Name, address)
	g.mu.Lock()
	first := g.taken == nil
	if first {
		g.taken = err
		close(g.refused)
	}
	g.mu.Unlock()
	if first {
		g.cfg.Log.Error("gossip: name is taken, this node withdraws", "name", g.cfg.Self.Name, "address", address)
	}
	return err
}

// pruneEvery is how many rounds of rejoin pass between two looks for what may be forgotten.
const pruneEvery = 16

// rejoin keeps looking for members that are not alive and for seeds that were never met, until the node leaves.
func (g *Gossip) rejoin() {
	every := time.NewTicker(g.cfg.Timings.Rejoin)
	defer every.Stop()
	for round := 0; ; round++ {
		select {
		case <-every.C:
			if round%pruneEvery == 0 {
				g.view.prune(time.Now(), g.cfg.Timings.Forget, g.cfg.Bounds.Members)
			}
			// Each side may hold the other dead: then one exchange tells both so, and the next carries the denials.
			if missing := g.missing(round); len(missing) > 0 {
				if _, err := g.meet(g.ctx, missing); err != nil {
					g.cfg.Log.Debug("gossip: rejoin", "error", err)
				}
			}
		case <-g.refused:
			// Tell the others at once, so that nobody has to find this life dead.
			if !g.depart() {
				return
			}
			if err := g.withdraw(); err != nil {
				g.cfg.Log.Debug("gossip: withdraw", "error", err)
			}
			return
		case <-g.ctx.Done():
			return
		}
	}
}

// missing returns the addresses to try in this round: a bounded window that moves over all that are worth it.
func (g *Gossip) missing(round int) []string {
	g.mu.Lock()
	seeds, gone := slices.Clone(g.seeds), g.left
	g.mu.Unlock()
	if gone || len(seeds) == 0 && g.view.whole() {
		return nil
	}
	addresses, alive := g.view.lost()
	addresses = slices.DeleteFunc(append(addresses, seeds...), func(a string) bool { return alive[a] })
	out := make([]string, min(len(addresses), maxDials))
	for i := range out {
		out[i] = addresses[(round*len(out)+i)%len(addresses)]
	}
	return out
}

// resolve decides which of two living lives bears a name: the current one if it answers, else the rival.
func (g *Gossip) resolve(current, rival *peer) {
	answered := g.answers(current)
	if answered {
		g.cfg.Log.Log(g.ctx, unlessEarlier(current.address, rival), "gossip: name is taken", "name", rival.name, "by", current.address, "refused", rival.address)
		return
	}
	g.cfg.Log.Info("gossip: member is back", "name", rival.name, "old address", current.address, "new", rival.address)
	g.view.replace(current, rival)
}

// unlessEarlier is the level at which to tell of a second life of a name: a warning, unless it was at the same address, and
// so is what gossip remembers of an earlier start of the same node.
func unlessEarlier(address string, second *peer) slog.Level {
	if second.address == address {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// answers reports whether a life answers at its address within Timings.NameProbe.
func (g *Gossip) answers(p *peer) bool {
	ctx, cancel := context.WithTimeout(g.ctx, g.cfg.Timings.NameProbe)
	defer cancel()
	_, err := wait(ctx, func(outcome func([]byte, error)) (*Call, error) {
		return g.ask(g.view.session(p), p, kindCheck, nil, outcome)
	})
	return err == nil
}

// admit looks for this node's own name in what a node it joins knows, before anything of it is taken in. If a life of that
// name at another address answers, this node must not join. The same call comes when others join this node; that they know
// such a life, or are one, is no reason to yield to it.
func (g *Gossip) admit(nodes []*memberlist.Node) error {
	if g.settled.Load() || !g.visiting(nodes) {
		return nil
	}
	for _, n := range nodes {
		if n.Name == g.life || n.State != memberlist.StateAlive && n.State != memberlist.StateSuspect {
			continue
		}
		p, err := g.view.peer(n.Name)
		if err != nil || p.name != g.cfg.Self.Name || p.address == g.view.selfAddress() {
			continue
		}
		if g.answers(p) {
			return g.refuse(p.address)
		}
	}
	return nil
}
