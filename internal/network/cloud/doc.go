// Package cloud is the driver of WhatsApp's official network: Meta's Cloud API.
//
// It has no connections of its own. A session sends with plain HTTPS requests, and Meta reports messages and statuses by calling the
// channel's address (webhook.go). Meta assigns its own id to a message only in the response to the request that sends it. So our id
// travels along as opaque data, an attempt is committed before each request, and a lost response is resolved by the status that
// follows: see [session.sendMessage].
//
// Invariants:
//
//   - Meta's ids never leave the driver: the table remote_message maps them.
//   - A message without an open attempt did not leave. One with an open attempt is not sent again before the waiting time is over.
//   - Nothing of a call is stored before its signature is verified over the bytes as they came.
//   - The access token is sent to the host of the Graph API and to Meta's hosts of files only.
package cloud
