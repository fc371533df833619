// Package compat holds no code but tests: real clients of OpenSearch run
// against a cluster of this project. It is a module of its own, so that those
// who import the project do not get the clients.
//
// In virtual time, opensearch-go:
//
//  1. Its typed requests and answers fit: a search, an index that is created,
//     looked for, and deleted, the node's own words.
//  2. Its typed errors fit: 404, 400, and the 429 of a throttled search, with
//     type and reason.
//  3. Its retries with back-off on 429 work in virtual time: ten minutes of
//     them in less than a second.
//  4. It goes on with the other nodes while one is down, and comes back to it.
//
// Against live clusters of the program that is built from the tree:
//
//  5. Each route and method that the published OpenAPI document knows takes
//     the document's requests and gives its answers; a list names the others.
//  6. The npm client discovers all nodes on start, its typed calls for query
//     groups go through the alias, a 429 is its ResponseError, and it retries
//     on the next node while one is down. Its version is that of
//     js/package-lock.json.
//  7. The curl lines of the README do what the README says.
//
// `make compat` runs all of it; it needs node 18 or newer, npm, bash and curl.
package compat
