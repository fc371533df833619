package scenario

import (
	"fmt"
	"reflect"
)

// Then returns f with one step more, which starts at a time and does what a
// text says in the words of a file, such as
//
//	partition: {sides: [[m1], rest], for: 20s}
//
// The step is checked as part of the file: it may name what the file and its
// earlier steps do. Faults point into the text, which they call "step".
func (f *File) Then(at Duration, action string) (*File, error) {
	next := f.copied()
	d := newDecoder(sourceOf("step", []byte(action)))
	node := d.parse([]byte(action))
	if node == nil {
		return nil, d.faults.orNil()
	}
	step := Step{At: at}
	d.value(node, reflect.ValueOf(&step.Action).Elem(), fmt.Sprintf("steps[%d]", len(f.Steps)), rules{})
	next.Steps = append(next.Steps, step)
	check(next, d)
	if err := d.faults.orNil(); err != nil {
		return nil, err
	}
	return next, nil
}
