package otp

import (
	"net/url"
	"strings"

	"parley"
)

// chatLink is the address that opens a chat with a number, a text typed in.
func chatLink(number, text string) string { return "https://wa.me/" + number + "?text=" + escape(text) }

// appURI opens the same chat in the app, where it is installed.
func appURI(number, text string) string {
	return "whatsapp://send?phone=" + number + "&text=" + escape(text)
}

// phoneLink is the page of this server that opens a simulated phone with a text typed in. The ticket
// stands in the fragment, which browsers keep to themselves: it is in no log of a proxy.
func phoneLink(base string, contact parley.ContactID, to parley.ChannelCode, text, ticket string) string {
	return base + "/phone/" + contact.Number() + "?to=" + escape(string(to)) + "&text=" + escape(text) + "#ticket=" + escape(ticket)
}

// escape percent-encodes a value of a query. A blank is %20: apps take a plus sign for one.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
