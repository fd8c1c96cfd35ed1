// Package safehttp makes HTTP clients that cannot reach private addresses, for every URL that API callers provide:
// callbacks, webhooks, media and link previews.
//
// Invariants:
//
//   - The address that is dialled is checked, after DNS and again at each redirect. A name says nothing about where it
//     leads.
//   - A client uses no proxy: a proxy would dial without that check.
//   - Errors for callers reveal nothing about the other end but a status.
package safehttp
