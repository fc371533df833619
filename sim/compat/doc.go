// Package compat holds no code but tests: real clients of OpenSearch run
// against a cluster of this project in virtual time. It is a module of its own,
// so that those who import the project do not get the clients.
//
// What the tests show of opensearch-go:
//
//  1. Its typed requests and answers fit: a search, an index that is created,
//     looked for, and deleted, the node's own words.
//  2. Its typed errors fit: 404, 400, and the 429 of a throttled search, with
//     type and reason.
//  3. Its retries with back-off on 429 work in virtual time: ten minutes of
//     them in less than a second.
//  4. It goes on with the other nodes while one is down, and comes back to it.
package compat
