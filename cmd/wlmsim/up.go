package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/live"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// upIndex is the index that a new cluster has.
const (
	upIndex  = "logs"
	upShards = 6
)

// upServiceTime is how long a shard of it works.
var upServiceTime = cluster.ServiceTime{Distribution: cluster.LogNormal, P50: 20 * time.Millisecond, P99: 120 * time.Millisecond}

func newUp(s streams) *cobra.Command {
	var f nodeFlags
	var o live.Options
	var processes bool
	var format, path string
	c := &cobra.Command{
		Use:   "up",
		Short: "Run a live cluster on this machine until it is interrupted",
		Long: `Run a live cluster of nodes on loopback: real raft on Bolt files, real gossip,
OpenSearch's HTTP API. Every node is a manager and a data node. A new cluster has
workload management enabled and an index named logs.

With --scenario the cluster is that of a file: its managers and data nodes, its
users, groups, rules, indices and load, which arrives in real time, again and
again, until the cluster is stopped. Its steps are left out.

Ctrl-C stops the cluster cleanly; a second one stops it at once.`,
		Example: `  wlmsim up                                     # three nodes on ports 9200 to 9202
  wlmsim up --nodes 5 --processes --data-dir data
  wlmsim up --profile submitted --allow-holds    # with the flaws of the pull request
  wlmsim up --scenario scenarios/load/a-noisy-neighbour-stays-outside.yaml  # a busy cluster to try a client on`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if format != "text" && format != "json" {
				return usageError{fmt.Errorf("--format %s: want text or json", format)}
			}
			var file *scenario.File
			if path != "" {
				if file, err = readUpScenario(s, path, c.Flags(), &f, &o); err != nil {
					return err
				}
			}
			if o.Node, err = f.options(s.err); err != nil {
				return err
			}
			if file != nil {
				o.Node.Workers, o.Node.Queue = file.Cluster.Workers, file.Cluster.Queue
			}
			if processes {
				if o.Process, err = processStarter(s, &f); err != nil {
					return err
				}
			}
			return runUp(c.Context(), s, o, format, file)
		},
	}
	flags := c.Flags()
	f.register(flags)
	flags.IntVar(&o.Nodes, "nodes", 3, fmt.Sprintf("how many nodes, 1 to %d", live.MaxNodes))
	flags.StringVar(&o.HTTP, "http", "127.0.0.1:9200", "ip:port of the first node's HTTP API; the next nodes take the next ports; port 0: free ones")
	flags.StringVar(&o.DataDir, "data-dir", "", "folder that keeps the cluster's state; without it a temporary one is used and removed")
	flags.BoolVar(&processes, "processes", false, "run every node as a process of its own")
	flags.StringVar(&path, "scenario", "", "scenario file whose cluster and load to run live")
	flags.StringVar(&format, "format", "text", "how to describe the cluster: text or json")
	return c
}

// processStarter starts nodes as processes of this same program.
func processStarter(s streams, f *nodeFlags) (func(live.NodeOptions) (live.Member, error), error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return func(o live.NodeOptions) (live.Member, error) {
		args := append([]string{"node", "--follow-input", "--format", "json", "--name", o.Name, "--data-dir", o.DataDir, "--http", o.HTTP,
			"--workers", strconv.Itoa(o.Workers), "--queue", strconv.Itoa(o.Queue)}, f.args()...)
		for _, role := range o.Roles {
			args = append(args, "--roles", string(role))
		}
		if len(o.Join) > 0 {
			args = append(args, "--join", strings.Join(o.Join, ","))
		}
		p, err := live.StartProcess(o.Name, path, args, s.err)
		if err != nil {
			return nil, err
		}
		return p, nil
	}, nil
}

// runUp runs a cluster, that of a filled scenario file if there is one, until
// the context ends.
func runUp(ctx context.Context, s streams, o live.Options, format string, file *scenario.File) error {
	defer collectLess()()
	fmt.Fprintln(s.err, "starting the nodes")
	c, err := live.Up(ctx, o)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	err = orInterrupted(ctx, serveUp(ctx, s, c, o.Node, format, file))
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}

// orInterrupted returns what stopped a cluster on its way up: the interrupt,
// whatever error that led to.
func orInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted before the cluster was ready: %w", ctx.Err())
	}
	return err
}

func serveUp(ctx context.Context, s streams, c *live.Cluster, o live.NodeOptions, format string, file *scenario.File) error {
	if file == nil {
		err := c.CreateIndex(ctx, cluster.CreateIndex{Name: upIndex, UUID: node.NewID(uint64(time.Now().UnixNano())), Shards: upShards, ServiceTime: upServiceTime, CreatedAt: time.Now().UnixMilli()})
		if err == nil {
			err = describe(s.out, c, upIndex, format, o)
		}
		if err == nil {
			<-ctx.Done()
			fmt.Fprintln(s.err, "stopping")
		}
		return err
	}
	groups, err := c.Furnish(ctx, file)
	if err != nil {
		return err
	}
	index := slices.Min(slices.Collect(maps.Keys(file.Cluster.Indices)))
	if err := describe(s.out, c, index, format, o); err != nil {
		return err
	}
	err = offer(ctx, s.err, c, file, groups, o.Security)
	fmt.Fprintln(s.err, "stopping")
	return err
}

// upCluster is how `up` describes the cluster.
type upCluster struct {
	Leader string   `json:"leader"`
	Index  string   `json:"index"`
	Nodes  []upNode `json:"nodes"`
}

type upNode struct {
	Name  string         `json:"name"`
	URL   string         `json:"url"`
	Roles []cluster.Role `json:"roles"`
	PID   int            `json:"pid"`
	live.Addresses
}

// curl begins a command that a node answers; where users are known it asks for
// the password of one of them.
func curl(o live.NodeOptions) string {
	command, user := "curl", "alice:any"
	if o.Security.CA != "" {
		command += " --cacert '" + o.Security.CA + "'"
	}
	if len(o.REST.Users) > 0 {
		user = slices.Min(slices.Collect(maps.Keys(o.REST.Users)))
	}
	return command + " -u '" + strings.ReplaceAll(user, "'", `'\''`) + "'"
}

func describe(out io.Writer, c *live.Cluster, index, format string, o live.NodeOptions) error {
	secure := o.Security.Cert != ""
	u := upCluster{Leader: c.Leader, Index: index}
	for i, m := range c.Members {
		at := m.Where()
		u.Nodes = append(u.Nodes, upNode{m.Name(), scheme(secure) + "://" + at.HTTP, c.Places[i].Roles, m.PID(), at})
	}
	if format == "json" {
		return json.NewEncoder(out).Encode(u)
	}
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"node", "http", "raft", "gossip", "roles", "leader"})
	for _, n := range u.Nodes {
		leads := ""
		if n.Name == u.Leader {
			leads = "*"
		}
		t.AppendRow(table.Row{n.Name, n.URL, n.Raft, n.Gossip, fmt.Sprint(n.Roles), leads})
	}
	t.Render()
	_, err := fmt.Fprintf(out, "\n%s '%s/%s/_search?pretty'\n", curl(o), u.Nodes[0].URL, index)
	return err
}
