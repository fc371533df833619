// Command demo shows the throttle on a live cluster, from outside: it starts
// `wlmsim up`, does everything over HTTP, and exits 0 only if exactly the
// searches over the limit were refused. `make demo` runs it.
package main
