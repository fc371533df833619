// Command wlmsim runs clusters of simulated search nodes that throttle
// searches as OpenSearch's workload management does. Each subcommand has a
// file of its own and does no more than read flags and call the packages of
// the project.
package main
