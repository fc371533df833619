package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// document is what `--format json` writes.
type document struct {
	Results     []world.Result `json:"results"`
	Differences []Difference   `json:"differences,omitempty"`
}

// JSON writes one document with an array results, and where a file ran under
// several profiles an array differences.
func JSON(w io.Writer, results []world.Result) error {
	d := document{Results: make([]world.Result, 0, len(results)), Differences: Differences(results)}
	for _, r := range results {
		if r.Groups == nil {
			r.Groups = map[string]world.Counters{}
		}
		if r.Checks == nil {
			r.Checks = []check.Result{}
		}
		d.Results = append(d.Results, r)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// MaxDocument bounds what [Read] reads: some hundred thousand runs.
const MaxDocument = 1 << 30

// Read reads the document that [JSON] writes.
func Read(r io.Reader) ([]world.Result, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxDocument {
		return nil, fmt.Errorf("a document of over %d bytes", MaxDocument)
	}
	var d document
	if err := jsonv2.Unmarshal(text, &d, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if d.Results == nil {
		return nil, errors.New(`there is no array "results"`)
	}
	for i := range d.Results {
		if err := sound(&d.Results[i]); err != nil {
			return nil, fmt.Errorf("results[%d]: %w", i, err)
		}
	}
	return d.Results, complete(text, d.Results)
}

// sound checks what the types cannot say.
func sound(r *world.Result) error {
	if err := known(r.Verdict); err != nil {
		return err
	}
	for i := range r.Checks {
		if err := known(r.Checks[i].Verdict); err != nil {
			return fmt.Errorf("checks[%d]: %w", i, err)
		}
	}
	return nil
}

func known(v check.Verdict) error {
	switch v {
	case check.Held, check.Broken, check.Undecided:
		return nil
	}
	return fmt.Errorf("verdict %q: want held, broken or undecided", v)
}

// complete checks that no member of the document is missing: written again, it
// has as many.
func complete(text []byte, results []world.Result) error {
	var given, whole any
	if err := json.Unmarshal(text, &given); err != nil {
		return err
	}
	var again bytes.Buffer
	if err := JSON(&again, results); err != nil {
		return err
	}
	if err := json.Unmarshal(again.Bytes(), &whole); err != nil {
		return err
	}
	return lacks(given, whole, "")
}

// lacks names the first member of whole that given does not have.
func lacks(given, whole any, path string) error {
	switch w := whole.(type) {
	case map[string]any:
		g, _ := given.(map[string]any)
		for _, name := range sortedKeys(w) {
			if _, there := g[name]; !there {
				return fmt.Errorf("%s%s is missing", path, name)
			}
			if err := lacks(g[name], w[name], path+name+"."); err != nil {
				return err
			}
		}
	case []any:
		g, _ := given.([]any)
		for i := range min(len(w), len(g)) {
			if err := lacks(g[i], w[i], fmt.Sprintf("%s[%d].", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}
