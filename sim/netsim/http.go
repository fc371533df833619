package netsim

import "net/http"

// HTTPTransport returns a transport for an http.Client that runs on this host:
// it dials through the network, asks no proxy, and otherwise has net/http's
// zero values. http.Serve on a listener of Listen is its other end. The caller
// closes its idle connections in the end, or lets the network's Close do it.
func (h *Host) HTTPTransport() *http.Transport {
	return &http.Transport{DialContext: h.DialContext}
}
