package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/wlmsim/wlmsim/sim/live"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// countsEvery is how often the counts of the load are told.
const countsEvery = time.Second

// readUpScenario reads the file whose cluster `up` shall be, and puts into the
// flags and options what it says and no flag does.
func readUpScenario(s streams, path string, given *pflag.FlagSet, f *nodeFlags, o *live.Options) (*scenario.File, error) {
	files, err := readFiles(s, []string{path}, nil)
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, usageError{fmt.Errorf("--scenario %s: want one file", path)}
	}
	file := files[0].parsed.Filled()
	var faults []error
	if given.Changed("nodes") {
		faults = append(faults, errors.New("--nodes: the nodes are those of the scenario"))
	}
	if f.users != "" {
		faults = append(faults, errors.New("--users: the users are those of the scenario"))
	}
	if entries, err := os.ReadDir(o.DataDir); err == nil && len(entries) > 0 {
		faults = append(faults, fmt.Errorf("--data-dir %s: a scenario needs a new cluster, and something is there", o.DataDir))
	}
	if len(faults) > 0 {
		return nil, usageError{errors.Join(faults...)}
	}
	if len(file.Steps) > 0 {
		fmt.Fprintf(s.err, "%s: its steps are left out: a live cluster takes nodes, users, groups, rules, indices and load\n", path)
	}
	if !given.Changed("profile") {
		f.profile = file.Profile
	}
	f.switches = append(assignments("switches.", file.Switches), f.switches...)
	f.settings = append(assignments("", file.Cluster.Settings), f.settings...)
	o.Places = live.PlacesOf(file)
	return file, nil
}

// assignments writes a map as flags take it, by name.
func assignments[V ~string](prefix string, m map[string]V) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, prefix+name+"="+string(m[name]))
	}
	return all
}

// offer offers the file's load to the cluster until the context ends, and tells
// the counts.
func offer(ctx context.Context, out io.Writer, c *live.Cluster, f *scenario.File, groups map[string]string, security live.Security) error {
	if len(f.Load) == 0 {
		<-ctx.Done()
		return nil
	}
	config, err := security.Client()
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: live.MaxInFlight, DisableCompression: true}
	defer transport.CloseIdleConnections()
	urls := map[string]string{}
	for _, m := range c.Members {
		urls[m.Name()] = scheme(config != nil) + "://" + m.Where().HTTP
	}
	d := live.Drive(ctx, live.DriverConfig{File: f, URLs: urls, Groups: groups, Seed: f.Seed, Client: &http.Client{Transport: transport}})
	defer d.Wait()
	tick := time.NewTicker(countsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintln(out, countsText(d.Counts()))
		case <-ctx.Done():
			return nil
		}
	}
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}

func countsText(all []live.LoadCounts) string {
	var texts []string
	for _, l := range all {
		texts = append(texts, fmt.Sprintf("%s: %d sent in %d attempts, %d completed, %d throttled, %d failed, %d given up",
			l.Name, l.Sent, l.Attempts, l.Completed, l.Throttled, l.Failed, l.Gone))
	}
	return strings.Join(texts, "; ")
}
