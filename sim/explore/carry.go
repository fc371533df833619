package explore

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"reflect"

	"github.com/wlmsim/wlmsim/sim/history"
)

// carried is a result as it goes from one process to another: whole, with the
// events behind the outcomes, which [Write] shows.
type carried struct {
	Result plainResult
	Traces [][]carriedEvent // of the outcomes, and then of the checks
	Lanes  []string
	Set    []string
	Seed   uint64
	Names  map[string]string
}

// carriedEvent is a [laneEvent].
type carriedEvent struct {
	Lane  int
	Event history.Event
}

// plainResult is a Result without its methods, or gob would call them.
type plainResult Result

// MarshalBinary implements [encoding.BinaryMarshaler].
func (r *Result) MarshalBinary() ([]byte, error) {
	c := carried{Result: plainResult(*r), Lanes: r.lanes, Set: r.set, Seed: r.seed, Names: r.names}
	c.Result.Outcomes = make([]Outcome, len(r.Outcomes))
	for i, o := range r.Outcomes {
		c.add(o.trace)
		o.Observed = make(Observed, len(o.Observed))
		for k, v := range r.Outcomes[i].Observed {
			o.Observed[k] = Value{v.Name, basic(v.Value)}
		}
		c.Result.Outcomes[i] = o
	}
	for i := range r.Checks {
		c.add(r.Checks[i].trace)
	}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(&c)
	return b.Bytes(), err
}

func (c *carried) add(trace []laneEvent) {
	var events []carriedEvent
	for _, e := range trace {
		events = append(events, carriedEvent{e.lane, e.Event})
	}
	c.Traces = append(c.Traces, events)
}

// trace returns one of the traces; nil if it has no events.
func (c *carried) trace(i int) (events []laneEvent) {
	for _, e := range c.Traces[i] {
		events = append(events, laneEvent{e.Lane, e.Event})
	}
	return events
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler].
func (r *Result) UnmarshalBinary(text []byte) error {
	var c carried
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&c); err != nil {
		return err
	}
	if want := len(c.Result.Outcomes) + len(c.Result.Checks); len(c.Traces) != want {
		return fmt.Errorf("%d outcomes and checks with the events of %d", want, len(c.Traces))
	}
	*r = Result(c.Result)
	r.lanes, r.set, r.seed, r.names = c.Lanes, c.Set, c.Seed, c.Names
	for i := range r.Outcomes {
		r.Outcomes[i].trace = c.trace(i)
	}
	for i := range r.Checks {
		r.Checks[i].trace = c.trace(len(r.Outcomes) + i)
	}
	if r.Outcomes == nil { // gob has no empty ones
		r.Outcomes = []Outcome{}
	}
	if r.Checks == nil {
		r.Checks = []Check{}
	}
	return nil
}

// basic returns an observed value as one of the types that gob knows.
func basic(v any) any {
	v = plain(v)
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.Bool:
		return x.Bool()
	case reflect.Int, reflect.Int64:
		return x.Int()
	case reflect.Float64:
		return x.Float()
	}
	return reflect.ValueOf(v).String()
}
