package rest

import (
	"bytes"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator"
)

// MaxLookups bounds the searches that one search may start by its query, those
// of their own queries included. OpenSearch has no bound.
const MaxLookups = 16

// lookupsOf finds the terms lookups of a query that need a search:
//
//	{"terms": {"user": {"index": "users", "path": "id", "query": {...}}}}
//
// A lookup by id reads one document, which is no search; since documents have
// no fields here, it has no effect.
func lookupsOf(query []byte) ([]coordinator.Lookup, error) {
	if !bytes.Contains(query, []byte(`"terms"`)) {
		return nil, nil
	}
	var clause any
	if err := json.Unmarshal(query, &clause); err != nil {
		return nil, cluster.Errorf(cluster.Parsing, "query malformed: %v", err)
	}
	finder := lookupFinder{left: MaxLookups}
	return finder.find(clause)
}

type lookupFinder struct{ left int }

// inner names the members of a clause in which other clauses stand: one, or an
// array of them, sorted.
var inner = map[string][]string{
	"bool":           {"filter", "must", "must_not", "should"},
	"boosting":       {"negative", "positive"},
	"constant_score": {"filter"},
	"dis_max":        {"queries"},
	"function_score": {"query"},
	"has_child":      {"query"},
	"has_parent":     {"query"},
	"nested":         {"query"},
	"script_score":   {"query"},
}

// find returns the lookups of a clause, or of an array of clauses, in the order
// in which the canonical text has them.
func (l *lookupFinder) find(clause any) (found []coordinator.Lookup, err error) {
	if list, ok := clause.([]any); ok {
		for _, one := range list {
			more, err := l.find(one)
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
		return found, nil
	}
	object, _ := clause.(map[string]any)
	for _, kind := range slices.Sorted(maps.Keys(object)) {
		body, _ := object[kind].(map[string]any)
		more, err := l.inside(kind, body)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (l *lookupFinder) inside(kind string, body map[string]any) (found []coordinator.Lookup, err error) {
	if kind == "terms" {
		return l.terms(body)
	}
	for _, name := range inner[kind] {
		more, err := l.find(body[name])
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// terms reads a terms clause, in which at most one member is a lookup.
func (l *lookupFinder) terms(body map[string]any) ([]coordinator.Lookup, error) {
	for _, field := range slices.Sorted(maps.Keys(body)) {
		lookup, ok := body[field].(map[string]any)
		if !ok {
			continue
		}
		one, searches, err := l.lookup(lookup)
		if err != nil || !searches {
			return nil, err
		}
		return []coordinator.Lookup{one}, nil
	}
	return nil, nil
}

func (l *lookupFinder) lookup(body map[string]any) (one coordinator.Lookup, searches bool, err error) {
	refuse := func(format string, args ...any) (coordinator.Lookup, bool, error) {
		return one, false, cluster.Errorf(cluster.IllegalArgument, "[terms] query lookup element "+format, args...)
	}
	for _, name := range slices.Sorted(maps.Keys(body)) {
		_, text := body[name].(string)
		switch name {
		case "index", "id", "path", "routing":
			if !text {
				return refuse("requires a text as its [%s]", name)
			}
		case "query", "store":
		default:
			return refuse("does not support [%s]", shorten(name))
		}
	}
	query, hasQuery := body["query"]
	id, hasID := body["id"]
	switch {
	case body["index"] == nil:
		return refuse("requires specifying the index.")
	case body["path"] == nil:
		return refuse("requires specifying the path.")
	case hasQuery && hasID:
		return refuse("cannot specify both id and query.")
	case !hasQuery && (!hasID || id == ""):
		return refuse("requires specifying either the id or the query.")
	case hasID:
		return one, false, nil
	}
	if object, ok := query.(map[string]any); !ok || len(object) != 1 {
		return refuse("requires an object with one clause as its query.")
	}
	if l.left--; l.left < 0 {
		return one, false, cluster.Errorf(cluster.IllegalArgument, "a query may look terms up by at most %d other queries", MaxLookups)
	}
	one.ServiceTime = -1
	one.Index, _ = body["index"].(string)
	one.Routing, _ = body["routing"].(string)
	if one.Query, err = json.Marshal(query, json.Deterministic(true)); err != nil {
		return one, false, cluster.Errorf(cluster.Parsing, "query malformed: %v", err)
	}
	one.Lookups, err = l.find(query)
	return one, true, err
}
