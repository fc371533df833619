package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/live"
	"github.com/wlmsim/wlmsim/wlm"
)

// nodeFlags are what `up` and `node` share: what each node is like.
type nodeFlags struct {
	profile    string
	switches   []string
	settings   []string
	users      string
	gossipKey  string
	cert, key  string
	ca         string
	allowHolds bool
	queryGroup bool
	unnamed    bool
	verbose    bool
}

func (f *nodeFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.profile, "profile", wlm.ProfileReviewed, "profile of switches: "+strings.Join(wlm.Profiles(), " or "))
	flags.StringArrayVar(&f.switches, "set", nil, "one switch alone: switches.NAME=VALUE (repeatable)")
	flags.StringArrayVar(&f.settings, "setting", nil,
		"cluster setting of a new cluster: KEY=VALUE (repeatable); "+cluster.SettingMode+" is enabled and "+cluster.SettingRuleRefresh+" 1000 unless given")
	flags.StringVar(&f.users, "users", "", "YAML file of users, bcrypt hashes and roles; only they may log in")
	flags.StringVar(&f.gossipKey, "gossip-key", "", "key that encrypts gossip, 32, 48 or 64 hex digits, the same on every node")
	flags.StringVar(&f.cert, "tls-cert", "", "PEM certificate of the node, for raft and HTTP")
	flags.StringVar(&f.key, "tls-key", "", "PEM key of the certificate")
	flags.StringVar(&f.ca, "tls-ca", "", "PEM certificate of the authority that signed every node's certificate")
	flags.BoolVar(&f.allowHolds, "allow-holds", false, "let clients hold steps by PUT /_wlmsim/holds/{step}")
	flags.BoolVar(&f.queryGroup, "query-group-alias", false, "serve workload groups also as query groups, their name before OpenSearch 3.0")
	flags.BoolVar(&f.unnamed, "no-principals", false, "take nobody's name, as OpenSearch does without its security plugin")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log what the nodes do")
}

// args returns the flags again, for a node in a process of its own.
func (f *nodeFlags) args() []string {
	args := []string{"--profile", f.profile, "--users", f.users, "--gossip-key", f.gossipKey, "--tls-cert", f.cert, "--tls-key", f.key, "--tls-ca", f.ca,
		fmt.Sprintf("--allow-holds=%t", f.allowHolds), fmt.Sprintf("--query-group-alias=%t", f.queryGroup), fmt.Sprintf("--no-principals=%t", f.unnamed), fmt.Sprintf("--verbose=%t", f.verbose)}
	for _, s := range f.switches {
		args = append(args, "--set", s)
	}
	for _, s := range f.settings {
		args = append(args, "--setting", s)
	}
	return args
}

// options reads the flags; all mistakes come back at once.
func (f *nodeFlags) options(stderr io.Writer) (live.NodeOptions, error) {
	var o live.NodeOptions
	var faults []error
	fault := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	var err error
	o.Switches, err = f.readSwitches()
	fault(err)
	o.Settings, err = f.readSettings()
	fault(err)
	o.Security = live.Security{Cert: f.cert, Key: f.key, CA: f.ca}
	if f.gossipKey != "" {
		if o.Security.GossipKey, err = hex.DecodeString(f.gossipKey); err != nil {
			fault(fmt.Errorf("--gossip-key: %w", err))
		}
	}
	if f.users != "" {
		o.REST.Users, err = readUsers(f.users)
		fault(err)
	}
	o.REST.AllowHolds, o.Holds = f.allowHolds, f.allowHolds
	o.REST.QueryGroupAlias, o.REST.NoPrincipals = f.queryGroup, f.unnamed
	if f.unnamed && f.users != "" {
		fault(errors.New("--users and --no-principals exclude each other"))
	}
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	o.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	if len(faults) > 0 {
		return o, usageError{errors.Join(faults...)}
	}
	return o, nil
}

func (f *nodeFlags) readSwitches() (wlm.Switches, error) {
	s, err := wlm.Profile(f.profile)
	if err != nil {
		return s, fmt.Errorf("--profile: %w", err)
	}
	for _, assignment := range f.switches {
		path, value, found := strings.Cut(assignment, "=")
		name, isSwitch := strings.CutPrefix(path, "switches.")
		if !found || !isSwitch {
			return s, fmt.Errorf("--set %s: a live node takes switches.NAME=VALUE", assignment)
		}
		if s, err = s.With(name, value); err != nil {
			return s, fmt.Errorf("--set %s: %w", assignment, err)
		}
	}
	return s, nil
}

func (f *nodeFlags) readSettings() (cluster.SettingsChange, error) {
	enabled, refresh := string(cluster.Enabled), "1000"
	c := cluster.SettingsChange{Persistent: map[string]*string{cluster.SettingMode: &enabled, cluster.SettingRuleRefresh: &refresh}}
	for _, assignment := range f.settings {
		key, value, found := strings.Cut(assignment, "=")
		if !found {
			return c, fmt.Errorf("--setting %s: want KEY=VALUE", assignment)
		}
		c.Persistent[key] = &value
	}
	if err := c.Validate(false); err != nil {
		return c, fmt.Errorf("--setting: %w", err)
	}
	return c, nil
}

func newNode(s streams) *cobra.Command {
	var f nodeFlags
	var o live.NodeOptions
	var roles []string
	var format string
	var followInput, leave bool
	c := &cobra.Command{
		Use:   "node --name NAME --data-dir DIR",
		Short: "Run one live node of a cluster that may span machines",
		Long: `Run one live node until it is interrupted. On an empty data folder and without
--join it begins a new cluster of its own; with --join it enters the cluster of
the named members. A node that starts again on its data folder comes back as
itself and finds the others.

A node that listens off loopback needs a gossip key and TLS files.`,
		Example: `  wlmsim node --name m1 --data-dir data/m1 --http 127.0.0.1:9200 --gossip 127.0.0.1:9400
  wlmsim node --name m2 --data-dir data/m2 --http 127.0.0.1:9201 --join 127.0.0.1:9400`,
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return usageError{fmt.Errorf("--format %s: want text or json", format)}
			}
			given, err := f.options(s.err)
			if err != nil {
				return err
			}
			given.Name, given.DataDir, given.HTTP, given.Raft, given.Gossip, given.Join = o.Name, o.DataDir, o.HTTP, o.Raft, o.Gossip, o.Join
			given.Workers, given.Queue = o.Workers, o.Queue
			for _, r := range roles {
				given.Roles = append(given.Roles, cluster.Role(r))
			}
			return runNode(c.Context(), s, given, nodeBehaviour{format: format, followInput: followInput, leave: leave})
		},
	}
	flags := c.Flags()
	f.register(flags)
	flags.StringVar(&o.Name, "name", "", "the node's name, unique in the cluster")
	flags.StringSliceVar(&roles, "roles", []string{string(cluster.Manager), string(cluster.Data)}, "what the node does: cluster_manager, data")
	flags.StringSliceVar(&o.Join, "join", nil, "gossip addresses of members to join")
	flags.StringVar(&o.HTTP, "http", "127.0.0.1:9200", "ip:port of the HTTP API")
	flags.StringVar(&o.Raft, "raft", "127.0.0.1:0", "ip:port of raft; port 0: the one before, or any")
	flags.StringVar(&o.Gossip, "gossip", "127.0.0.1:0", "ip:port of gossip; port 0: the one before, or any")
	flags.StringVar(&o.DataDir, "data-dir", "", "folder of the node's state")
	flags.IntVar(&o.Workers, "workers", 0, "shard requests that a data node works on at once; 0: 64")
	flags.IntVar(&o.Queue, "queue", 0, "shard requests that wait for a worker of a data node; 0: 1000")
	flags.StringVar(&format, "format", "text", "text, or json: one event a line")
	flags.BoolVar(&leave, "leave", false, "when stopped, leave the cluster for good; shards on the node are lost")
	flags.BoolVar(&followInput, "follow-input", false, "carry out a command of the cluster a line of standard input, and stop when it ends")
	_ = c.MarkFlagRequired("name")     // the flag is defined above
	_ = c.MarkFlagRequired("data-dir") // the flag is defined above
	return c
}

// leaveTimeout bounds how long a node takes to leave.
const leaveTimeout = 10 * time.Second

// nodeBehaviour is what the command does around its node.
type nodeBehaviour struct {
	format      string
	followInput bool
	leave       bool
}

func runNode(ctx context.Context, s streams, o live.NodeOptions, b nodeBehaviour) error {
	defer collectLess()()
	n, err := live.StartNode(o)
	if err != nil {
		return err
	}
	report := func(e live.Event, text string) {
		if b.format == "json" {
			e.Name, e.Addresses = o.Name, n.Addresses
			line, _ := json.Marshal(e) // strings always encode
			text = string(line)
		}
		fmt.Fprintln(s.out, text)
	}
	report(live.Event{Event: live.EventStarted},
		fmt.Sprintf("node %s listens: http %s, raft %s, gossip %s", o.Name, n.Addresses.HTTP, n.Addresses.Raft, n.Addresses.Gossip))
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { // ends with ctx
		select {
		case err := <-n.Failed():
			stop(nodeFailed{err})
		case <-ctx.Done():
		}
	}()
	if b.followInput {
		go func() { // ends with the input, at the latest when the process ends
			followCommands(ctx, s.in, n, report)
			stop(nil)
		}()
	}
	if n.Ready(ctx) == nil {
		report(live.Event{Event: live.EventReady, Leader: n.Leader()}, fmt.Sprintf("node %s is ready; others join it with --join %s", o.Name, n.Addresses.Gossip))
		<-ctx.Done()
	}
	var failed nodeFailed
	if errors.As(context.Cause(ctx), &failed) {
		return errors.Join(fmt.Errorf("node %s cannot go on: %w", o.Name, failed.error), n.Close())
	}
	if b.leave {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		if err := n.Leave(ctx); err != nil {
			fmt.Fprintln(s.err, "wlmsim: leave:", err)
		}
	}
	return n.Close()
}

// nodeFailed is why a node ended by itself.
type nodeFailed struct{ error }

// followCommands proposes each line of in until it ends.
func followCommands(ctx context.Context, in io.Reader, n *live.Node, report func(live.Event, string)) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		c, err := cluster.DecodeCommand(lines.Bytes())
		if err == nil {
			_, err = n.Propose(ctx, c)
		}
		e, text := live.Event{Event: live.EventProposed}, "done"
		if err != nil {
			refusal, ok := errors.AsType[*cluster.Error](err)
			if !ok {
				refusal = cluster.Errorf(cluster.IllegalState, "%v", err)
			}
			e.Refusal, text = refusal, err.Error()
		}
		report(e, text)
	}
}
