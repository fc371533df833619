// Package imports holds no code but a test: imports of this module point one
// way only, and each third-party module has the importers that ARCHITECTURE.md
// allows it.
//
// Promises:
//
//  1. cluster < applier, wlm, datanode < coordinator < sim/node < the rest of
//     sim < cmd: a package imports only what stands left of it, or its own
//     folder. Of two packages on one level neither knows the other, and the
//     coordinator knows neither applier nor datanode.
//  2. cluster, cluster/probe, cluster/wire, cluster/task, applier, wlm,
//     datanode and coordinator import the standard library and this module only.
//  3. Raft and its store are imported by cluster/replica alone, memberlist by
//     cluster/gossip alone, porcupine by sim/check alone.
//  4. testing/synctest is imported by tests and by sim/bubble alone.
//
// Test files may meet their package's neighbours and any module, but outside
// sim and cmd they know no more of sim than other code.
package imports
