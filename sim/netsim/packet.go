package netsim

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

const (
	maxDatagram  = 65507 // what fits into IPv4
	maxSpare     = 4096  // datagrams kept for re-use,
	maxSpareSize = 4096  // if they are no larger
)

// datagram is one under way or in a socket's queue.
type datagram struct {
	data     []byte
	flow     *flow
	port     int // of the destination
	from     *net.UDPAddr
	fromPort netip.AddrPort
}

// PacketConn is a port that sends and receives datagrams. Beside net.PacketConn
// it has the two calls of *net.UDPConn that need no memory.
type PacketConn struct {
	host *Host
	port int
	addr *net.UDPAddr
	from netip.AddrPort

	// Guarded by the network's lock.
	closed                      bool
	queue                       ring[*datagram]
	readers                     waiters
	readDeadline, writeDeadline time.Time
	lastTo                      netip.AddrPort // the flow of the last write, as most go the same way
	lastFlow                    *flow
}

var _ net.PacketConn = (*PacketConn)(nil)

// ListenPacket sends and receives datagrams on a port of the host; port 0 is the
// lowest free one from 32768 on. It fails as Listen does.
func (h *Host) ListenPacket(port int) (*PacketConn, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	err := h.usableLocked()
	if err == nil {
		port, err = freePort(h.packets, port)
	}
	addr := &net.UDPAddr{IP: h.ip.AsSlice(), Port: port}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "udp", Addr: addr, Err: err}
	}
	p := &PacketConn{host: h, port: port, addr: addr, from: netip.AddrPortFrom(h.ip, uint16(port))}
	h.packets[port] = p
	return p, nil
}

// WriteTo implements net.PacketConn.
func (p *PacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if udp, ok := to.(*net.UDPAddr); ok {
		return p.WriteToUDPAddrPort(b, udp.AddrPort())
	}
	addr, err := netip.ParseAddrPort(to.String())
	if err != nil {
		return 0, p.failed("write", fmt.Errorf("netsim: datagrams go to an IP address and port: %w", err))
	}
	return p.WriteToUDPAddrPort(b, addr)
}

// WriteToUDPAddrPort sends one datagram of at most 65,507 bytes, and never
// waits. That it is lost on the way is no error.
func (p *PacketConn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := p.unusableLocked(p.writeDeadline); err != nil {
		return 0, p.failed("write", err)
	}
	if len(b) > maxDatagram {
		return 0, p.failed("write", os.NewSyscallError("sendto", syscall.EMSGSIZE))
	}
	n.stats.Sent++
	f := p.flowLocked(to)
	if f == nil {
		n.stats.Unheard++
		return len(b), nil
	}
	p.showLocked(f.link, int(to.Port()), b)
	p.sendLocked(f, int(to.Port()), b)
	return len(b), nil
}

// flowLocked returns the flow to an address, or nil if no host has it.
func (p *PacketConn) flowLocked(to netip.AddrPort) *flow {
	if p.lastTo == to && p.lastFlow != nil {
		return p.lastFlow
	}
	host := p.host.atLocked(to.Addr())
	if host == nil {
		return nil
	}
	p.lastTo, p.lastFlow = to, p.host.linkLocked(host).flowLocked("datagram", int(to.Port()))
	return p.lastFlow
}

// showLocked gives a datagram to the taps, without the lock.
func (p *PacketConn) showLocked(l *link, port int, b []byte) {
	n := p.host.net
	if len(n.cfg.Taps) == 0 {
		return
	}
	flow := Flow{From: l.from.name, To: l.to.name, FromPort: p.port, ToPort: port}
	n.unlocked(func() {
		for _, tap := range n.cfg.Taps {
			tap.Datagram(flow, b)
		}
	})
}

// sendLocked lets the link decide what becomes of a datagram.
func (p *PacketConn) sendLocked(f *flow, port int, b []byte) {
	n := p.host.net
	fate := f.link.faultsLocked().datagramFate(f.next())
	switch {
	case p.closed: // while the taps looked
		return
	case f.link.cuts > 0:
		n.stats.Cut++
		return
	case fate.lost:
		n.stats.Lost++
		return
	}
	at := n.nowLocked() + fate.latency
	if fate.heldBack {
		n.stats.Reordered++
		at += fate.extra
	} else {
		at = max(at, f.last+1)
		f.last = at
	}
	p.putLocked(f, port, b, at)
	if fate.twice {
		n.stats.Duplicated++
		p.putLocked(f, port, b, at+fate.echo)
	}
}

// putLocked puts a copy of a datagram under way, unless too many are.
func (p *PacketConn) putLocked(f *flow, port int, b []byte, at int64) {
	n := p.host.net
	if f.link.underWay >= n.cfg.UnderWay {
		n.stats.Full++
		return
	}
	f.link.underWay++
	d := n.takeDatagramLocked()
	d.data = append(d.data[:0], b...)
	d.flow, d.port, d.from, d.fromPort = f, port, p.addr, p.from
	n.scheduleLocked(event{at: at, gram: d})
}

func (n *Network) takeDatagramLocked() *datagram {
	last := len(n.spare) - 1
	if last < 0 {
		return &datagram{}
	}
	d := n.spare[last]
	n.spare = n.spare[:last]
	return d
}

func (n *Network) spareLocked(d *datagram) {
	if len(n.spare) < maxSpare && cap(d.data) <= maxSpareSize {
		n.spare = append(n.spare, d)
	}
}

// arriveLocked puts a datagram into its socket's queue, or drops it.
func (d *datagram) arriveLocked() Delivery {
	l := d.flow.link
	n := l.from.net
	l.underWay--
	report := Delivery{Kind: Dropped, From: l.from.name, To: l.to.name, Port: d.port, Bytes: len(d.data)}
	p := l.to.packets[d.port]
	switch {
	case l.cuts > 0:
		n.stats.Cut++
		report.Why = ByCut
	case p == nil:
		n.stats.Unheard++
		report.Why = NoSocket
	case p.queue.len >= n.cfg.Queue:
		n.stats.Full++
		report.Why = QueueFull
	default:
		n.stats.Delivered++
		report.Kind = Datagram
		p.queue.push(d)
		p.readers.wake()
		return report
	}
	n.spareLocked(d)
	return report
}

// ReadFrom implements net.PacketConn. The address is the sender's *net.UDPAddr,
// shared by all of its datagrams: do not change it.
func (p *PacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	k, d, err := p.read(b)
	if err != nil {
		return 0, nil, err
	}
	return k, d.from, nil
}

// ReadFromUDPAddrPort is ReadFrom with the sender's address as a value.
func (p *PacketConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	k, d, err := p.read(b)
	return k, d.fromPort, err
}

// read takes a datagram from the queue; what does not fit into b is lost. It
// returns the datagram without its bytes.
func (p *PacketConn) read(b []byte) (int, datagram, error) {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		if err := p.unusableLocked(p.readDeadline); err != nil {
			return 0, datagram{}, p.failed("read", err)
		}
		if p.queue.len > 0 {
			break
		}
		n.waitLocked(&p.readers, p.readDeadline, nil)
	}
	d := p.queue.pop()
	k := copy(b, d.data)
	taken := *d
	taken.data = nil
	n.spareLocked(d)
	return k, taken, nil
}

func (p *PacketConn) unusableLocked(deadline time.Time) error {
	switch {
	case p.closed:
		return net.ErrClosed
	case passed(deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Close implements net.PacketConn. What was sent still arrives.
func (p *PacketConn) Close() error {
	p.host.net.mu.Lock()
	defer p.host.net.mu.Unlock()
	if p.closed {
		return p.failed("close", net.ErrClosed)
	}
	p.closeLocked()
	return nil
}

func (p *PacketConn) closeLocked() {
	p.closed = true
	delete(p.host.packets, p.port)
	for p.queue.len > 0 {
		p.host.net.spareLocked(p.queue.pop())
	}
	p.readers.wake()
}

// LocalAddr implements net.PacketConn.
func (p *PacketConn) LocalAddr() net.Addr { return p.addr }

// SetDeadline implements net.PacketConn.
func (p *PacketConn) SetDeadline(t time.Time) error { return p.setDeadlines(&t, &t) }

// SetReadDeadline implements net.PacketConn.
func (p *PacketConn) SetReadDeadline(t time.Time) error { return p.setDeadlines(&t, nil) }

// SetWriteDeadline implements net.PacketConn.
func (p *PacketConn) SetWriteDeadline(t time.Time) error { return p.setDeadlines(nil, &t) }

func (p *PacketConn) setDeadlines(read, write *time.Time) error {
	p.host.net.mu.Lock()
	defer p.host.net.mu.Unlock()
	if p.closed {
		return p.failed("set", net.ErrClosed)
	}
	if read != nil {
		p.readDeadline = *read
		p.readers.wake()
	}
	if write != nil {
		p.writeDeadline = *write
	}
	return nil
}

func (p *PacketConn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: p.addr, Err: err}
}
