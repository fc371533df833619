package live

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// MaxInFlight bounds the searches that a [Driver] has under way. Those of open
// loads that arrive beyond it wait, and so do all after them.
const MaxInFlight = 4096

// minRound is the least time from one start of the loads to the next.
const minRound = time.Second

// DriverConfig says what load to offer to a live cluster.
type DriverConfig struct {
	File   *scenario.File    // filled
	URLs   map[string]string // of the nodes' HTTP APIs, by name; all that the file's loads name
	Groups map[string]string // ids of the file's groups, by name
	Seed   uint64            // of what is drawn; each round of the loads has the next
	Client *http.Client      // sends the searches; keeps enough idle connections
}

// Driver offers the loads of a scenario file over HTTP, in real time. When all
// have come to their ends they begin anew.
type Driver struct {
	config  DriverConfig
	inside  chan struct{} // holds one for each search under way
	loads   []*driven
	running sync.WaitGroup
}

// LoadCounts are what the clients of a load saw so far. Requests are counted
// when they have ended; attempts are not requests.
type LoadCounts struct {
	Name                                               string
	Sent, Attempts, Completed, Throttled, Failed, Gone uint64 // Gone: the client gave up
}

// driven is a load with its counts.
type driven struct {
	spec                                               *scenario.Load
	sent, attempts, completed, throttled, failed, gone atomic.Uint64
}

// Drive starts the loads; they end with the context.
func Drive(ctx context.Context, c DriverConfig) *Driver {
	d := &Driver{config: c, inside: make(chan struct{}, MaxInFlight)}
	began := time.Now()
	for i := range c.File.Load {
		l := &driven{spec: &c.File.Load[i]}
		d.loads = append(d.loads, l)
		d.running.Go(func() { d.rounds(ctx, l, began) })
	}
	return d
}

// Wait returns when everything has ended.
func (d *Driver) Wait() { d.running.Wait() }

// Counts returns the counts of every load, in the order of the file.
func (d *Driver) Counts() []LoadCounts {
	var all []LoadCounts
	for _, l := range d.loads {
		all = append(all, LoadCounts{l.spec.Name, l.sent.Load(), l.attempts.Load(), l.completed.Load(), l.throttled.Load(), l.failed.Load(), l.gone.Load()})
	}
	return all
}

// round is the time from one start of the loads to the next.
func (d *Driver) round() time.Duration {
	longest := minRound
	for _, l := range d.loads {
		end := time.Duration(l.spec.From + l.spec.For)
		if rows := d.config.File.Trace(l.spec.Name); len(rows) > 0 {
			end = time.Duration(l.spec.From) + rows[len(rows)-1].At
		}
		longest = max(longest, end)
	}
	return longest
}

// rounds offers a load again and again.
func (d *Driver) rounds(ctx context.Context, l *driven, began time.Time) {
	every := d.round()
	for n := 0; ctx.Err() == nil; n++ {
		start := began.Add(time.Duration(n)*every + time.Duration(l.spec.From))
		plan := world.NewPlan(d.config.File, l.spec, d.config.Seed+uint64(n))
		if !sleepUntil(ctx, start) {
			return
		}
		if l.spec.Arrive.Closed > 0 {
			d.closed(ctx, l, plan, start)
		} else {
			d.open(ctx, l, plan, start)
		}
	}
}

// open sends what arrives by itself.
func (d *Driver) open(ctx context.Context, l *driven, plan *world.Plan, start time.Time) {
	for s, more := plan.Next(); more; s, more = plan.Next() {
		if !sleepUntil(ctx, start.Add(s.At)) {
			return
		}
		select {
		case d.inside <- struct{}{}:
		case <-ctx.Done():
			return
		}
		d.running.Go(func() {
			d.request(ctx, l, plan, s)
			<-d.inside
		})
	}
}

// closed runs clients that send their next search once they have the answer.
func (d *Driver) closed(ctx context.Context, l *driven, plan *world.Plan, start time.Time) {
	end := start.Add(time.Duration(l.spec.For))
	var clients sync.WaitGroup
	for client := range uint64(l.spec.Arrive.Closed) {
		clients.Go(func() {
			for n := uint64(0); time.Now().Before(end) && ctx.Err() == nil; n++ {
				d.request(ctx, l, plan, plan.OfClient(client, n))
				sleepUntil(ctx, time.Now().Add(time.Duration(l.spec.Arrive.Think)))
			}
		})
	}
	clients.Wait()
}

// request sends a search until its client is content or gives up.
func (d *Driver) request(ctx context.Context, l *driven, plan *world.Plan, s world.Planned) {
	l.sent.Add(1)
	if l.spec.CancelAfter > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(l.spec.CancelAfter))
		defer stop()
	}
	for attempt := 1; ; attempt++ {
		l.attempts.Add(1)
		status := d.attempt(ctx, l.spec, s, plan.Node(s.Number, attempt))
		again := ctx.Err() == nil && plan.Again(status, attempt)
		if again && sleepUntil(ctx, time.Now().Add(plan.Wait(s.Number, attempt))) {
			continue
		}
		switch {
		case ctx.Err() != nil:
			l.gone.Add(1)
		case status == http.StatusOK:
			l.completed.Add(1)
		case status == http.StatusTooManyRequests:
			l.throttled.Add(1)
		default:
			l.failed.Add(1)
		}
		return
	}
}

// attempt sends a search to a node and returns the status; 0 if there was no
// answer.
func (d *Driver) attempt(ctx context.Context, spec *scenario.Load, s world.Planned, node string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.config.URLs[node]+searchPath(spec, s.Index), strings.NewReader(searchText(&s)))
	if err != nil {
		return 0
	}
	request.Header.Set("Content-Type", "application/json")
	if s.User != "" {
		request.Header.Set(rest.HeaderUser, url.PathEscape(s.User))
	}
	for _, role := range s.Roles {
		request.Header.Add(rest.HeaderRole, url.PathEscape(role))
	}
	if spec.Group != "" {
		request.Header.Set(rest.HeaderGroup, d.config.Groups[spec.Group])
	}
	answer, err := d.config.Client.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0
	}
	return answer.StatusCode
}

func searchPath(spec *scenario.Load, index string) string {
	path := "/_search"
	if index != "" {
		path = "/" + url.PathEscape(index) + path
	}
	query := url.Values{}
	if spec.Timeout > 0 {
		query.Set("timeout", strconv.FormatInt(max(1, time.Duration(spec.Timeout).Milliseconds()), 10)+"ms")
	}
	if spec.AllowPartial != nil {
		query.Set("allow_partial_search_results", strconv.FormatBool(*spec.AllowPartial))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// searchText is the body of a search, with its service time if it brings one
// along.
func searchText(s *world.Planned) string {
	text, t := "", s.Service
	switch {
	case s.ServiceTime >= 0:
		text = strconv.Quote(s.ServiceTime.String())
	case t.Distribution == cluster.Exponential:
		text = fmt.Sprintf(`{"exponential":{"mean":"%v"}}`, t.Mean)
	case t.Distribution == cluster.LogNormal:
		text = fmt.Sprintf(`{"lognormal":{"p50":"%v","p99":"%v"}}`, t.P50, t.P99)
	case t.Distribution == cluster.Pareto:
		text = fmt.Sprintf(`{"pareto":{"min":"%v","alpha":%v}}`, t.Min, t.Alpha)
	default:
		return "{}"
	}
	return `{"ext":{"wlmsim":{"service_time":` + text + `}}}`
}

// sleepUntil waits for an instant; false if the context ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
