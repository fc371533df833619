package scenario

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// MaxTime bounds every time and duration of a file: a year.
const MaxTime = 365 * 24 * time.Hour

// MaxRate bounds how many arrivals a second a load may have.
const MaxRate = 10_000_000

// Duration is a time span, or an offset from the start of the run. It is
// written as Go writes one (1m30s, 250ms) and is 0 to [MaxTime].
type Duration time.Duration

// UnmarshalText reads a duration; it refuses negative ones.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := parseTime(string(text))
	if err == nil && v < 0 {
		err = fmt.Errorf("time %s is negative", text)
	}
	*d = Duration(v)
	return err
}

// MarshalText writes the shortest form: 1m, not 1m0s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns the written form.
func (d Duration) String() string { return shortTime(time.Duration(d)) }

// Offset is a signed time span, for clocks that are ahead or behind.
type Offset time.Duration

// UnmarshalText reads an offset such as 8h or -8h.
func (o *Offset) UnmarshalText(text []byte) error {
	v, err := parseTime(string(text))
	*o = Offset(v)
	return err
}

// MarshalText writes the shortest form.
func (o Offset) MarshalText() ([]byte, error) { return []byte(shortTime(time.Duration(o))), nil }

func parseTime(text string) (time.Duration, error) {
	v, err := time.ParseDuration(text)
	switch {
	case err != nil && plainNumber.MatchString(text):
		return 0, fmt.Errorf("time %s lacks a unit: ns, us, ms, s, m or h", text)
	case err != nil:
		return 0, fmt.Errorf("%q is no time: write one like 250ms, 1m30s or 2h", text)
	case v > MaxTime || v < -MaxTime:
		return 0, fmt.Errorf("time %s is out of bounds: at most %s", text, shortTime(MaxTime))
	}
	return v, nil
}

// plainNumber is how a number is written: no octal, hexadecimal, underscore,
// infinity or sign of plus.
var plainNumber = regexp.MustCompile(`^-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

func shortTime(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Range is a span of durations from which one is drawn evenly, written
// 1ms..5ms, or one duration, written 2ms. The zero value is 0s.
type Range struct {
	Min, Max Duration
}

// UnmarshalText reads a range.
func (r *Range) UnmarshalText(text []byte) error {
	low, high, two := strings.Cut(string(text), "..")
	if !two {
		high = low
	}
	if err := r.Min.UnmarshalText([]byte(low)); err != nil {
		return err
	}
	if err := r.Max.UnmarshalText([]byte(high)); err != nil {
		return err
	}
	if r.Max < r.Min {
		return fmt.Errorf("range %s ends before it begins", text)
	}
	return nil
}

// MarshalText writes the range.
func (r Range) MarshalText() ([]byte, error) {
	if r.Min == r.Max {
		return r.Min.MarshalText()
	}
	return fmt.Appendf(nil, "%v..%v", r.Min, r.Max), nil
}

// Rate is a number of events in a unit of time, written 200/s, 10/m or 1/h.
// The zero value means that there is none.
type Rate struct {
	Count float64
	Per   time.Duration // a second, a minute or an hour
}

var rateUnits = []struct {
	name string
	per  time.Duration
}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}}

// UnmarshalText reads a rate; it is over 0, and at most [MaxRate] a second.
func (r *Rate) UnmarshalText(text []byte) error {
	count, unit, _ := strings.Cut(string(text), "/")
	r.Per = 0
	for _, u := range rateUnits {
		if u.name == unit {
			r.Per = u.per
		}
	}
	var err error
	if r.Count, err = strconv.ParseFloat(count, 64); err != nil || r.Per == 0 || !plainNumber.MatchString(count) {
		return fmt.Errorf("%q is no rate: write one like 200/s, 10/m or 1/h", text)
	}
	if !(r.Count > 0) || r.PerSecond() > MaxRate || r.Mean() > MaxTime {
		return fmt.Errorf("rate %s is out of bounds: over 0, at most %d/s, at least one in %s", text, MaxRate, shortTime(MaxTime))
	}
	return nil
}

// MarshalText writes the rate.
func (r Rate) MarshalText() ([]byte, error) {
	for _, u := range rateUnits {
		if u.per == r.Per {
			return fmt.Appendf(nil, "%s/%s", strconv.FormatFloat(r.Count, 'g', -1, 64), u.name), nil
		}
	}
	return nil, fmt.Errorf("rate of %v in %v has no unit: a second, a minute or an hour", r.Count, r.Per)
}

// PerSecond returns the rate in events a second.
func (r Rate) PerSecond() float64 { return r.Count / r.Per.Seconds() }

// Mean returns the mean time between two events.
func (r Rate) Mean() time.Duration {
	mean := float64(r.Per) / r.Count
	if mean > float64(2*MaxTime) { // a time.Duration cannot hold every quotient
		return 2 * MaxTime
	}
	return time.Duration(mean)
}

// Setting is the value of a setting. The file may write it as text, as a
// number or as true or false; it is kept as written.
type Setting string

// UnmarshalText keeps the text.
func (s *Setting) UnmarshalText(text []byte) error {
	*s = Setting(text)
	return nil
}
