// Package safehttp makes HTTP clients that cannot reach private addresses, for every address that a
// caller of the API gives us: callbacks, webhooks, media and link previews.
//
// What a name looks like says nothing about where it leads, so the only check that counts is made on
// the very address that is about to be dialled, after DNS and again at each redirect. Clients have a
// transport of their own and know no proxy: a proxy would dial for us, past that check.
package safehttp
