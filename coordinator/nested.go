package coordinator

import (
	"context"
	"strconv"
	"strings"
)

// rewrite runs the searches that the query needs the results of, all at once,
// and returns the first failure in their order. Their results would become
// part of the query, which is not evaluated.
//
// A nested search is led like any other one, by this node and for the same
// principal, and inherits the header of the search that starts it, so that its
// permit is one of its own group; whether it needs one is the throttle's to say.
func (s *search) rewrite(ctx context.Context) error {
	lookups := s.request.Lookups
	if len(lookups) == 0 {
		return nil
	}
	failures := make([]error, len(lookups))
	RunEach(len(lookups), len(lookups), func(i int) {
		failures[i] = errPanicked() // unless it returns
		_, failures[i] = s.c.lead(ctx, s.lookup(i), s)
	})
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// NestedName returns the name of the i-th search that the search of a name
// starts, from 0 on.
func NestedName(search string, i int) string { return search + "/" + strconv.Itoa(i+1) }

// OuterName returns the name of the search that started the one of a name, if
// that is what [NestedName] returns.
func OuterName(name string) (outer string, nested bool) {
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return "", false
	}
	n, err := strconv.Atoi(name[at+1:])
	return name[:at], err == nil && n > 0 && NestedName(name[:at], n-1) == name
}

func (s *search) lookup(i int) Request {
	l := &s.request.Lookups[i]
	return Request{
		ID: NestedName(s.name, i), OpaqueID: s.request.OpaqueID, Index: l.Index, GroupHeader: s.header,
		Query: l.Query, Routing: l.Routing, Lookups: l.Lookups, ServiceTime: l.ServiceTime,
	}
}
