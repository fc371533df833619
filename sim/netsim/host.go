package netsim

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"

	"github.com/wlmsim/wlmsim/internal/chain"
)

// Host is one machine of the network. Its methods may be called from any
// goroutine.
type Host struct {
	net   *Network
	name  string
	ip    netip.Addr
	links map[*Host]*link // never walked through, its order would show

	// Guarded by the network's lock.
	down      bool
	listeners map[int]*listener
	packets   map[int]*PacketConn
	conns     chain.List[conn]
	dialPort  int // the last one dialled from
}

const (
	firstDialPort   = 49152 // the dynamic ports of RFC 6335
	firstListenPort = 32768 // where the search for a free port begins
	maxPort         = 65535
	maxHosts        = 1<<24 - 2
)

func newHost(n *Network, name string, number int) *Host {
	if number > maxHosts {
		panic(fmt.Sprintf("netsim: host %q is number %d, addresses end at %d", name, number, maxHosts))
	}
	return &Host{
		net:       n,
		name:      name,
		ip:        netip.AddrFrom4([4]byte{10, byte(number >> 16), byte(number >> 8), byte(number)}),
		links:     make(map[*Host]*link),
		listeners: make(map[int]*listener),
		packets:   make(map[int]*PacketConn),
		dialPort:  firstDialPort - 1,
	}
}

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// IP returns the host's address, which never changes.
func (h *Host) IP() netip.Addr { return h.ip }

// Address returns the host's address with a port, as Dial takes it.
func (h *Host) Address(port int) string { return netip.AddrPortFrom(h.ip, uint16(port)).String() }

// Down tells whether the host has crashed and not been restarted.
func (h *Host) Down() bool {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return h.down
}

// Crash takes the host down as if its process had been killed: its own calls
// fail at once, its peers' connections are reset after the link's latency (or
// when a cut heals), dials to it are refused, datagrams to it dropped. What it
// sent before still arrives. Until Restart it can neither listen nor dial.
// Crashing a host that is down does nothing.
func (h *Host) Crash() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.down || h.net.closed {
		return
	}
	h.down = true
	h.shutLocked(syscall.ECONNRESET)
}

// Restart brings the host up again, with its address and nothing open.
func (h *Host) Restart() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.down = false
}

// shutLocked ends everything that is open on the host, in a fixed order.
func (h *Host) shutLocked(cause error) {
	for _, port := range slices.Sorted(maps.Keys(h.listeners)) {
		h.listeners[port].closeLocked()
	}
	for _, port := range slices.Sorted(maps.Keys(h.packets)) {
		h.packets[port].closeLocked()
	}
	for c := range h.conns.All() {
		c.abortLocked(cause)
	}
}

// usableLocked says why nothing can be opened on the host, if so.
func (h *Host) usableLocked() error {
	switch {
	case h.net.closed:
		return net.ErrClosed
	case h.down:
		return syscall.ENETDOWN
	}
	return nil
}

// freePort decides which port a socket gets: the one asked for, or the lowest
// free one from 32768 on for 0.
func freePort[T any](taken map[int]T, asked int) (int, error) {
	if asked < 0 || asked > maxPort {
		return 0, fmt.Errorf("port %d is not in 0..%d", asked, maxPort)
	}
	if asked != 0 {
		if _, is := taken[asked]; is {
			return 0, syscall.EADDRINUSE
		}
		return asked, nil
	}
	for port := firstListenPort; port <= maxPort; port++ {
		if _, is := taken[port]; !is {
			return port, nil
		}
	}
	return 0, syscall.EADDRNOTAVAIL
}

// nextDialPortLocked returns the port that the next connection is dialled from.
func (h *Host) nextDialPortLocked() int {
	if h.dialPort++; h.dialPort > maxPort {
		h.dialPort = firstDialPort
	}
	return h.dialPort
}

func (h *Host) tcpAddr(port int) *net.TCPAddr {
	return &net.TCPAddr{IP: h.ip.AsSlice(), Port: port}
}

// resolveLocked finds the host and port of an address, as seen from h: the name
// or IP address of a host, or a loopback address or localhost for h itself.
func (h *Host) resolveLocked(address string) (*Host, int, error) {
	name, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.Atoi(service)
	if err != nil || port < 1 || port > maxPort {
		return nil, 0, &net.AddrError{Err: "port is not in 1..65535", Addr: address}
	}
	if to := h.net.byName[name]; to != nil {
		return to, port, nil
	}
	if name == "localhost" {
		return h, port, nil
	}
	ip, err := netip.ParseAddr(name)
	if err != nil {
		return nil, 0, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	to := h.atLocked(ip)
	if to == nil {
		return nil, 0, syscall.EHOSTUNREACH
	}
	return to, port, nil
}

// atLocked returns the host with that address, or nil.
func (h *Host) atLocked(ip netip.Addr) *Host {
	ip = ip.Unmap()
	if ip.IsLoopback() {
		return h
	}
	if !ip.Is4() {
		return nil
	}
	b := ip.As4()
	number := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	if b[0] != 10 || number == 0 || number > len(h.net.hosts) {
		return nil
	}
	return h.net.hosts[number-1]
}
