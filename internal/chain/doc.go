// Package chain is a list that is linked through its items: a field of each
// item is its place in the list, so that listing it allocates nothing and taking
// it out needs no search.
//
// Promises, which chain_test.go holds against a slice:
//
//  1. What is listed is in the order in which it was added.
//  2. Add, Remove, First and Len take the same time however long the list is.
//  3. All yields each item that is listed when its turn comes; the one that is
//     yielded may be taken out.
//
// A list has no lock: it belongs to that of its owner.
package chain
