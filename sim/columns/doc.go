// Package columns lays text out in columns and lines of a terminal.
//
// Promises:
//
//  1. Columns are aligned in a terminal whatever is in the cells: wide letters
//     take two places, combining ones none. How wide a letter is does not
//     depend on the locale.
//  2. A line is broken at blanks alone, and only if it is too wide: a word that
//     is wider than there is room stays whole, so that what was printed can be
//     copied.
//
// All functions may be called from several goroutines at once.
package columns
