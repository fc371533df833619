package rest

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator"
)

func itoa(n int) string { return strconv.Itoa(n) }

func joined(names []string) string { return strings.Join(names, ",") }

// invalid returns the refusal of a request that is well-formed and makes no
// sense, in OpenSearch's numbered form.
func invalid(faults ...string) error {
	text := "Validation Failed: "
	for i, fault := range faults {
		text += itoa(i+1) + ": " + fault + ";"
	}
	return cluster.Errorf(actionValidation, "%s", text)
}

// maxScrollIDs bounds the texts of one request.
const maxScrollIDs = 1000

// scrollBody is a request about scrolls.
type scrollBody struct {
	ids       []string
	keepAlive time.Duration
}

// readScroll reads scroll ids from the path, the query string or the body, of
// which the body goes first.
func (c *call) readScroll(several bool) (*scrollBody, error) {
	s := &scrollBody{ids: list(c.vars.get("scroll_id"))}
	if c.query.Has("scroll_id") {
		s.ids = list(c.query.Get("scroll_id"))
	}
	if c.query.Has("scroll") {
		var err error
		if s.keepAlive, err = parseKeepAlive("scroll", c.query.Get("scroll")); err != nil {
			return nil, err
		}
	}
	data, err := c.body()
	if err != nil || len(data) == 0 {
		return s, err
	}
	return s, readBodyWith(&c.scratch.decoder, data, func(f *fields, name string) (err error) {
		switch {
		case name == "scroll_id" && several && f.kind() == '[':
			s.ids, err = f.texts()
		case name == "scroll_id":
			var id string
			id, err = f.text()
			s.ids = []string{id}
		case name == "scroll" && !several:
			s.keepAlive, err = f.keepAlive()
		default:
			if err := f.skip(); err != nil {
				return err
			}
			err = cluster.Errorf(cluster.IllegalArgument, "Unknown parameter [%s] in request body or parameter is of the wrong type", shorten(name))
		}
		return err
	})
}

func (f *fields) keepAlive() (time.Duration, error) {
	text, err := f.text()
	if err != nil {
		return 0, err
	}
	return parseKeepAlive(f.path, text)
}

func parseKeepAlive(name, text string) (time.Duration, error) {
	d, err := parseTime(name, text)
	if err == nil && d <= 0 {
		return 0, cluster.Errorf(cluster.IllegalArgument, "[%s] must be over 0 but was [%s]", name, shorten(text))
	}
	return d, err
}

// nextPage answers a request for the next page of a scroll.
func (c *call) nextPage() error {
	plainTotal, err := c.flag("rest_total_hits_as_int", false)
	if err != nil {
		return err
	}
	body, err := c.readScroll(false)
	if err != nil {
		return err
	}
	if len(body.ids) != 1 || body.ids[0] == "" {
		return invalid("scrollId is missing")
	}
	s := newSearch(false)
	s.request.ScrollID, s.request.Scroll = body.ids[0], body.keepAlive
	response, err := c.runFor(s)
	if err != nil {
		return err
	}
	c.out.searchAnswer(response, math.MaxInt64, plainTotal)
	return nil
}

// clearScroll ends scrolls. It takes no permit.
func (c *call) clearScroll() error {
	body, err := c.readScroll(true)
	if err != nil {
		return err
	}
	switch {
	case len(body.ids) == 0 || slices.Contains(body.ids, ""):
		return invalid("no scroll ids specified")
	case len(body.ids) > maxScrollIDs:
		return cluster.Errorf(cluster.IllegalArgument, "%d scroll ids are given: at most %d", len(body.ids), maxScrollIDs)
	case slices.Contains(body.ids, "_all"):
		body.ids = nil
	}
	if err := c.ready(); err != nil {
		return err
	}
	freed, err := c.config.Contexts.ClearScrolls(c.r.Context(), body.ids)
	if err != nil {
		return err
	}
	if freed == 0 {
		c.status = http.StatusNotFound
	}
	c.out.object(func() {
		c.out.name("succeeded").boolean(true)
		c.out.name("num_freed").integer(int64(freed))
	})
	return nil
}

// openPoint opens a point in time. It takes no permit, like all that is about
// points but the searches in them.
func (c *call) openPoint() (err error) {
	r := coordinator.PointRequest{Index: c.vars.get("index"), Preference: c.query.Get("preference"), Routing: c.query.Get("routing")}
	if r.AllowPartial, err = c.flag("allow_partial_pit_creation", true); err != nil {
		return err
	}
	if r.Options, err = c.indexOptions(); err != nil {
		return err
	}
	if !c.query.Has("keep_alive") {
		return invalid("keep alive not specified")
	}
	if r.KeepAlive, err = parseKeepAlive("keep_alive", c.query.Get("keep_alive")); err != nil {
		return err
	}
	if err := c.ready(); err != nil {
		return err
	}
	p, err := c.config.Contexts.OpenPoint(c.r.Context(), r)
	if err != nil {
		return err
	}
	c.out.object(func() {
		c.out.name("pit_id").text(p.ID)
		c.out.shards(&p.Shards)
		c.out.name("creation_time").integer(p.Created.UnixMilli())
	})
	return nil
}

// freePoints ends the points in time that the body names.
func (c *call) freePoints() error {
	data, err := c.body()
	if err != nil {
		return err
	}
	var ids []string
	err = readBodyWith(&c.scratch.decoder, data, func(f *fields, name string) (err error) {
		if name != "pit_id" {
			if err := f.skip(); err != nil {
				return err
			}
			return cluster.Errorf(cluster.IllegalArgument, "Unknown parameter [%s] in request body or parameter is of the wrong type: pit_id is the only one", shorten(name))
		}
		if f.kind() == '[' {
			ids, err = f.texts()
			return err
		}
		id, err := f.text()
		ids = []string{id}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(ids) == 0 || slices.Contains(ids, ""):
		return invalid("no pit ids specified")
	case len(ids) > maxScrollIDs:
		return cluster.Errorf(cluster.IllegalArgument, "%d pit ids are given: at most %d", len(ids), maxScrollIDs)
	}
	return c.free(ids)
}

// freeEveryPoint ends all points in time of the cluster.
func (c *call) freeEveryPoint() error { return c.free(nil) }

func (c *call) free(ids []string) error {
	if err := c.ready(); err != nil {
		return err
	}
	freed, err := c.config.Contexts.FreePoints(c.r.Context(), ids)
	if err != nil {
		return err
	}
	c.out.object(func() {
		c.out.name("pits").array(func() {
			for _, p := range freed {
				c.out.object(func() {
					c.out.name("successful").boolean(p.Successful)
					c.out.name("pit_id").text(p.ID)
				})
			}
		})
	})
	return nil
}

// listPoints lists all points in time of the cluster.
func (c *call) listPoints() error {
	if err := c.ready(); err != nil {
		return err
	}
	points, err := c.config.Contexts.Points(c.r.Context())
	if err != nil {
		return err
	}
	c.out.object(func() {
		c.out.name("pits").array(func() {
			for _, p := range points {
				c.out.object(func() {
					c.out.name("pit_id").text(p.Text)
					c.out.name("creation_time").integer(p.Created)
					c.out.name("keep_alive").integer(p.KeepAlive.Milliseconds())
				})
			}
		})
	})
	return nil
}
