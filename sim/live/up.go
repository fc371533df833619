package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/wlmsim/wlmsim/cluster"
)

// Options say what cluster to start.
type Options struct {
	Nodes   int     // 1 to [MaxNodes]: m1, m2 and so on, which are all managers and data nodes
	Places  []Place // if set, the nodes in place of Nodes: the first one is a manager
	HTTP    string  // ip:port of the first node; the next nodes take the next ports; port 0: free ones
	DataDir string  // "": a temporary folder, removed by Close
	// Process, if set, starts a node as a process of its own; else nodes run
	// in this one.
	Process func(NodeOptions) (Member, error)
	Node    NodeOptions // what every node is given; name, addresses, folder and joining are filled in
}

// Place is a node that a cluster shall have.
type Place struct {
	Name  string
	Roles []cluster.Role
}

// MaxNodes bounds a cluster on one machine.
const MaxNodes = 99

// places are the nodes to start, checked.
func (o Options) places() ([]Place, error) {
	n := o.Nodes
	if o.Places != nil {
		n = len(o.Places)
	}
	if n < 1 || n > MaxNodes {
		return nil, OptionsError{fmt.Errorf("a cluster has 1 to %d nodes, not %d", MaxNodes, n)}
	}
	if o.Places == nil {
		places := make([]Place, n)
		for i := range places {
			places[i] = Place{"m" + strconv.Itoa(i+1), []cluster.Role{cluster.Manager, cluster.Data}}
		}
		return places, nil
	}
	if !slices.Contains(o.Places[0].Roles, cluster.Manager) {
		return nil, OptionsError{fmt.Errorf("the first node, %s, is no manager", o.Places[0].Name)}
	}
	return o.Places, nil
}

// Member is a node of a cluster that [Up] started.
type Member interface {
	Name() string
	Where() Addresses
	// Ready waits until the node has caught up with the cluster, and returns
	// the leader's name.
	Ready(context.Context) (leader string, err error)
	// Propose has a command carried out; a refusal is a *cluster.Error.
	Propose(context.Context, cluster.Command) error
	// PID is the process that the node runs in.
	PID() int
	Close() error
}

// inProcess is a [Member] in this process.
type inProcess struct{ *Node }

func (m inProcess) Where() Addresses { return m.Addresses }
func (m inProcess) PID() int         { return os.Getpid() }

func (m inProcess) Ready(ctx context.Context) (string, error) {
	err := m.Node.Ready(ctx)
	return m.Leader(), err
}

func (m inProcess) Propose(ctx context.Context, c cluster.Command) error {
	_, err := m.Node.Propose(ctx, c)
	return err
}

// Cluster is a running cluster.
type Cluster struct {
	Members   []Member
	Places    []Place              // of the members, in the same order
	Leader    string               // name of the leader when the last node became ready
	form      cluster.DimensionKey // of the groups' throttling
	temporary string               // folder to remove
}

// Up starts a cluster and waits until every node is ready. On an error
// nothing is left running.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	places, err := o.places()
	if err != nil {
		return nil, err
	}
	if o.Process == nil {
		o.Process = func(n NodeOptions) (Member, error) {
			started, err := StartNode(n)
			return inProcess{started}, err
		}
	}
	c := &Cluster{Places: places, form: o.Node.Switches.DimensionKey}
	if o.DataDir == "" {
		dir, err := os.MkdirTemp("", "wlmsim-up-")
		if err != nil {
			return nil, err
		}
		o.DataDir, c.temporary = dir, dir
	}
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	var join []string
	for i, place := range c.Places {
		n := o.Node
		n.Name, n.Roles = place.Name, place.Roles
		n.DataDir = filepath.Join(o.DataDir, n.Name)
		n.Join = append(append([]string{}, o.Node.Join...), join...)
		address, err := nthAddress(o.HTTP, i)
		if err != nil {
			return err
		}
		n.HTTP = address
		m, err := o.Process(n)
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		c.Members = append(c.Members, m)
		join = append(join, m.Where().Gossip)
	}
	errs, leaders := make([]error, len(c.Members)), make([]string, len(c.Members))
	var waiting sync.WaitGroup
	for i, m := range c.Members {
		waiting.Go(func() {
			leader, err := m.Ready(ctx)
			if err != nil {
				err = fmt.Errorf("node %s is not ready: %w", m.Name(), err)
			}
			leaders[i], errs[i] = leader, err
		})
	}
	waiting.Wait()
	c.Leader = leaders[len(leaders)-1]
	return errors.Join(errs...)
}

// nthAddress returns the address whose port is n further; port 0 stays.
func nthAddress(address string, n int) (string, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", OptionsError{fmt.Errorf("HTTP address: %w", err)}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", OptionsError{fmt.Errorf("HTTP address %q: %q is no port", address, text)}
	}
	if port != 0 {
		port += uint64(n)
	}
	if port > 65535 {
		return "", OptionsError{fmt.Errorf("HTTP address %q: node %d would have port %d, over 65535", address, n+1, port)}
	}
	return net.JoinHostPort(host, strconv.FormatUint(port, 10)), nil
}

// CreateIndex makes an index unless the cluster has one of its name.
func (c *Cluster) CreateIndex(ctx context.Context, x cluster.CreateIndex) error {
	err := c.Members[0].Propose(ctx, &x)
	if cluster.KindOf(err) == cluster.ResourceExists {
		return nil
	}
	return err
}

// Close stops every node, the last one first, and removes the temporary
// folder.
func (c *Cluster) Close() error {
	var errs []error
	for i := len(c.Members) - 1; i >= 0; i-- {
		errs = append(errs, c.Members[i].Close())
	}
	if c.temporary != "" {
		errs = append(errs, os.RemoveAll(c.temporary))
	}
	return errors.Join(errs...)
}
