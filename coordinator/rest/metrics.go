package rest

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// routeCounts counts a route's answers by the first digit of their status.
type routeCounts struct {
	byClass   [6]atomic.Uint64
	throttled atomic.Uint64 // 429, which are also among the 4xx
}

func (n *routeCounts) add(status int) {
	if class := status / 100; class < len(n.byClass) {
		n.byClass[class].Add(1)
	}
	if status == http.StatusTooManyRequests {
		n.throttled.Add(1)
	}
}

// collector reads the node's figures when somebody asks for them, so that they
// cost a search nothing. No label names a user.
type collector struct {
	h                                         *Handler
	answers, throttled, version, rules, alive *prometheus.Desc
	held, buckets, outcomes                   *prometheus.Desc
}

func (h *Handler) newMetrics() http.Handler {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("wlmsim_"+name, help, labels, nil)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{
		h:         h,
		answers:   describe("http_answers_total", "Answers by route and class of status.", "route", "class"),
		throttled: describe("http_throttled_total", "Answers with status 429 by route.", "route"),
		version:   describe("state_version", "Version of the cluster state that is published on this node."),
		rules:     describe("rules_version", "State version that this node's view of the rules is from."),
		alive:     describe("members_alive", "Members that this node takes for alive."),
		held:      describe("permits_held", "Permits held by searches of a group.", "group"),
		buckets:   describe("permit_buckets", "Buckets of a group that hold permits.", "group"),
		outcomes:  describe("searches_total", "Searches of a group by outcome.", "group", "outcome"),
	})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
}

// Describe implements [prometheus.Collector].
func (m *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.answers, m.throttled, m.version, m.rules, m.alive, m.held, m.buckets, m.outcomes} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for _, r := range m.h.routes {
		for class := range r.counts.byClass {
			if n := r.counts.byClass[class].Load(); n > 0 {
				counter(m.answers, n, r.Pattern, strconv.Itoa(class)+"xx")
			}
		}
		if n := r.counts.throttled.Load(); n > 0 {
			counter(m.throttled, n, r.Pattern)
		}
	}
	status := m.h.config.Cluster.Status()
	gauge(m.version, float64(status.Version))
	gauge(m.rules, float64(status.RulesVersion))
	alive := 0
	for _, member := range status.Members {
		if member.Alive {
			alive++
		}
	}
	gauge(m.alive, float64(alive))
	for _, p := range m.h.config.Permits() {
		gauge(m.held, float64(p.Held), p.Group)
		gauge(m.buckets, float64(p.Buckets), p.Group)
	}
	for _, o := range m.h.config.Outcomes() {
		counter(m.outcomes, o.Completed, o.Group, "completed")
		counter(m.outcomes, o.Failed, o.Group, "failed")
		counter(m.outcomes, o.Throttled, o.Group, "throttled")
		counter(m.outcomes, o.Cancelled, o.Group, "cancelled")
	}
}

// showMetrics answers in the format of Prometheus.
func (c *call) showMetrics() error {
	answer := &textAnswer{header: http.Header{}}
	plain := c.r.Clone(c.r.Context())
	plain.Header = http.Header{} // whatever the client accepts, it gets the text format
	c.metrics.ServeHTTP(answer, plain)
	c.text = true
	c.out.b = append(c.out.b, answer.body...)
	return nil
}

// textAnswer keeps what promhttp writes.
type textAnswer struct {
	header http.Header
	body   []byte
}

func (a *textAnswer) Header() http.Header { return a.header }
func (a *textAnswer) WriteHeader(int)     {}
func (a *textAnswer) Write(b []byte) (int, error) {
	a.body = append(a.body, b...)
	return len(b), nil
}
