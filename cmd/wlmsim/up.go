package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/live"
	"github.com/wlmsim/wlmsim/sim/node"
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
	var format string
	c := &cobra.Command{
		Use:   "up",
		Short: "Run a live cluster on this machine until it is interrupted",
		Long: `Run a live cluster of nodes on loopback: real raft on Bolt files, real gossip,
OpenSearch's HTTP API. Every node is a manager and a data node. A new cluster has
workload management enabled and an index named logs.

Ctrl-C stops the cluster cleanly; a second one stops it at once.`,
		Example: `  wlmsim up                                     # three nodes on ports 9200 to 9202
  wlmsim up --nodes 5 --processes --data-dir data
  wlmsim up --profile submitted --allow-holds    # with the flaws of the pull request`,
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return usageError{fmt.Errorf("--format %s: want text or json", format)}
			}
			node, err := f.options(s.err)
			if err != nil {
				return err
			}
			o.Node = node
			if processes {
				if o.Process, err = processStarter(s, &f); err != nil {
					return err
				}
			}
			return runUp(c.Context(), s, o, format, f.cert != "")
		},
	}
	flags := c.Flags()
	f.register(flags)
	flags.IntVar(&o.Nodes, "nodes", 3, fmt.Sprintf("how many nodes, 1 to %d", live.MaxNodes))
	flags.StringVar(&o.HTTP, "http", "127.0.0.1:9200", "ip:port of the first node's HTTP API; the next nodes take the next ports; port 0: free ones")
	flags.StringVar(&o.DataDir, "data-dir", "", "folder that keeps the cluster's state; without it a temporary one is used and removed")
	flags.BoolVar(&processes, "processes", false, "run every node as a process of its own")
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
		args := append([]string{"node", "--follow-input", "--format", "json", "--name", o.Name, "--data-dir", o.DataDir, "--http", o.HTTP}, f.args()...)
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

func runUp(ctx context.Context, s streams, o live.Options, format string, secure bool) error {
	fmt.Fprintf(s.err, "starting %d nodes\n", o.Nodes)
	c, err := live.Up(ctx, o)
	if err != nil {
		return err
	}
	err = c.CreateIndex(ctx, cluster.CreateIndex{Name: upIndex, UUID: node.NewID(uint64(time.Now().UnixNano())), Shards: upShards, ServiceTime: upServiceTime, CreatedAt: time.Now().UnixMilli()})
	if err == nil {
		err = describe(s.out, c, format, secure)
	}
	if err == nil {
		<-ctx.Done()
		fmt.Fprintln(s.err, "stopping")
	}
	if closed := c.Close(); err == nil {
		err = closed
	}
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

func describe(out io.Writer, c *live.Cluster, format string, secure bool) error {
	scheme, curl := "http", "curl"
	if secure {
		scheme, curl = "https", "curl --cacert CA.pem"
	}
	u := upCluster{Leader: c.Leader, Index: upIndex}
	for _, m := range c.Members {
		at := m.Where()
		u.Nodes = append(u.Nodes, upNode{m.Name(), scheme + "://" + at.HTTP, []cluster.Role{cluster.Manager, cluster.Data}, m.PID(), at})
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
	_, err := fmt.Fprintf(out, "\n%s -u alice:any '%s/%s/_search?pretty'\n", curl, u.Nodes[0].URL, upIndex)
	return err
}
