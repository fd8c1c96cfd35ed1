package whatsapp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
)

// disconnection says how a connection ended and what happens next.
type disconnection struct {
	status     parley.ChannelStatus // Reconnecting: the session reconnects
	reason     string
	unpaired   bool                     // the account has no such device any more: it must be paired again
	retryAfter time.Duration            // when to try again after other states; zero: never
	retryNow   bool                     // comes back without waiting
	byServer   bool                     // the network ended it with an error
	replaced   bool                     // another connection of the same device took over
	bannedTill time.Time                // the end of a ban; zero: it is none
	refused    store.WAVersionContainer // the client's version, which is too old; zero: it is not
}

const (
	// loginRetryDelay is how long we wait after a login was refused for a reason that we do not know.
	loginRetryDelay = 30 * time.Minute
	pairAgain       = " Pair the channel again."

	outdatedSentence = "WhatsApp does not accept the version of its client that this program says it is. Upgrade Parley, or set a newer " +
		"version with --whatsapp-version."
	// replacedAgain is the time between two replacements of a connection after which the second is no other node's.
	replacedAgain = time.Minute
)

// replacedByNode is what happens after the connection was replaced by a node that did not know yet that it lost the channel,
// because it had been paused.
var replacedByNode = disconnection{status: parley.ChannelReconnecting,
	reason: "Another node connected as this device. The connection is being made again.", retryNow: true}

// toDisconnection returns false for events that do not end the connection.
func toDisconnection(evt any) (disconnection, bool) {
	switch e := evt.(type) {
	case *events.Disconnected:
		return disconnection{status: parley.ChannelReconnecting, reason: "The connection to WhatsApp was lost. It is being made again."}, true
	case *events.KeepAliveTimeout:
		return disconnection{status: parley.ChannelReconnecting, reason: "WhatsApp stopped answering. The connection is being made again."}, true
	case *events.ManualLoginReconnect: // stream error 515
		return disconnection{status: parley.ChannelReconnecting, reason: "WhatsApp asked for a new connection.", retryNow: true}, true
	case *events.StreamError:
		return disconnection{status: parley.ChannelReconnecting,
			reason: fmt.Sprintf("WhatsApp ended the connection with error %q. It is being made again.", e.Code)}, true
	case *events.LoggedOut:
		return loggedOut(e), true
	case *events.StreamReplaced:
		return disconnection{status: parley.ChannelFailed, replaced: true,
			reason: "Another program connected as this device. Stop it, then start the channel again."}, true
	case *events.TemporaryBan:
		return banned(e), true
	case *events.ClientOutdated:
		return disconnection{status: parley.ChannelFailed, reason: outdatedSentence}, true
	case *events.ConnectFailure:
		return disconnection{status: parley.ChannelFailed, retryAfter: loginRetryDelay,
			reason: fmt.Sprintf("WhatsApp refused the login with code %d. It is tried again in half an hour; "+
				"start the channel to try at once.",
				int(e.Reason))}, true
	case *events.CATRefreshError: // tokens of another product
		return disconnection{status: parley.ChannelFailed, reason: "WhatsApp asked for a token that this device does not have." + pairAgain}, true
	}
	return disconnection{}, false
}

// loggedOut distinguishes the reasons for a logout. whatsmeow has deleted the keys in every case.
func loggedOut(e *events.LoggedOut) disconnection {
	switch e.Reason {
	case events.ConnectFailureMainDeviceGone:
		return disconnection{status: parley.ChannelLoggedOut, unpaired: true,
			reason: "WhatsApp locked the account or logged its phone out. Open WhatsApp on the phone and do what it asks." + pairAgain}
	case events.ConnectFailureUnknownLogout:
		return disconnection{status: parley.ChannelFailed, unpaired: true,
			reason: "WhatsApp banned the account. Open WhatsApp on the phone to ask for a review; " +
				"once it works there, pair the channel again."}
	}
	return disconnection{status: parley.ChannelLoggedOut, unpaired: true, reason: "The account removed this device." + pairAgain}
}

// banReasons are the network's reasons for a ban that ends, in our words.
var banReasons = map[events.TempBanReason]string{
	events.TempBanSentToTooManyPeople:    "it wrote to too many people who do not have it in their address book",
	events.TempBanBlockedByUsers:         "too many people blocked it",
	events.TempBanCreatedTooManyGroups:   "it made too many groups with people who do not have it in their address book",
	events.TempBanSentTooManySameMessage: "it sent the same message to too many people",
	events.TempBanBroadcastList:          "it sent too much to a broadcast list",
}

func banned(e *events.TemporaryBan) disconnection {
	why, ok := banReasons[e.Code]
	if !ok {
		why = fmt.Sprintf("code %d", int(e.Code))
	}
	if e.Expire <= 0 {
		return disconnection{status: parley.ChannelFailed, retryAfter: loginRetryDelay, bannedTill: time.Now().Add(loginRetryDelay),
			reason: fmt.Sprintf("WhatsApp banned the account for a time: %s.", why)}
	}
	until := time.Now().Add(e.Expire)
	return disconnection{status: parley.ChannelFailed, retryAfter: e.Expire, bannedTill: until,
		reason: fmt.Sprintf("WhatsApp banned the account until %s: %s. The channel comes back then.",
			until.UTC().Format("2006-01-02 15:04 UTC"), why)}
}

func dialFailed(err error) disconnection {
	return disconnection{status: parley.ChannelReconnecting, reason: dialProblem(err) + " It is tried again."}
}

func dialProblem(err error) string {
	if status, ok := errors.AsType[socket.ErrWithStatusCode](err); ok {
		return fmt.Sprintf("WhatsApp answered with HTTP status %d.", status.StatusCode)
	}
	return unreachableMessage(err)
}

var (
	loginTimedOut = disconnection{status: parley.ChannelReconnecting, reason: "WhatsApp did not answer the login in time. It is tried again."}
	// noStanzaSeen is a login whose response was not seen here: whatsmeow handled it, and would handle messages, without us.
	noStanzaSeen = disconnection{status: parley.ChannelFailed,
		reason: "This build cannot read what WhatsApp sends, because it does not fit its whatsmeow library. Install another version of Parley."}
	loggedOutHere = disconnection{status: parley.ChannelLoggedOut, unpaired: true, reason: "The channel was logged out." + pairAgain}
	// loggedOutOffline is a logout without a connection to the network.
	loggedOutOffline = disconnection{status: parley.ChannelLoggedOut, unpaired: true,
		reason: "The channel was logged out here, without a connection: remove the device on the phone too, under Linked devices." +
			pairAgain}
	keysMissing = disconnection{status: parley.ChannelLoggedOut, unpaired: true, reason: "The keys of this device no longer exist." +
		pairAgain}
)

const (
	// lossBurst is how many connections in a row may be lost after a login and made again at once.
	lossBurst = 16
	// lossRefill is after how long one more may be.
	lossRefill = 10 * time.Second
	// steadyAfter is after how long a connection that the network ended with an error counts as lost, and not as refused.
	steadyAfter = time.Minute
	// lossJitter spreads the channels that lost their connections together.
	lossJitter = 50 * time.Millisecond
	// firstBackoff is how long to wait after the first dial or login that failed. It doubles from there.
	firstBackoff = time.Second
	// queuedBackoff is the longest wait while messages wait for the connection, and idleBackoff otherwise.
	queuedBackoff = 10 * time.Second
	idleBackoff   = time.Minute
)

// reconnects decides the delay before the next connection. A lost connection is dialled at once; a token bucket
// prevents a dial loop with a server that ends every connection. Only failed dials and logins back off.
type reconnects struct {
	now    func() time.Time
	random func(time.Duration) time.Duration // uniform below its argument

	used     int       // tokens that are missing in the bucket
	since    time.Time // when the refill of the next one began
	failures int       // dials and logins since the last success
}

func newReconnects() *reconnects { return &reconnects{now: time.Now, random: rand.N[time.Duration]} }

// after returns the wait after the end of a connection, which lasted for a time and may have been logged in.
func (r *reconnects) after(e disconnection, up bool, lasted time.Duration) time.Duration {
	if refused := e.byServer && lasted < steadyAfter; (up || e.retryNow) && !refused {
		return r.lost()
	}
	return r.failed()
}

// lost returns the wait after the loss of a connection that was logged in.
func (r *reconnects) lost() time.Duration {
	r.failures = 0
	now := r.now()
	if r.used == 0 {
		r.since = now
	}
	refilled := min(int(now.Sub(r.since)/lossRefill), r.used)
	r.used -= refilled
	r.since = r.since.Add(time.Duration(refilled) * lossRefill)
	if r.used == 0 {
		r.since = now
	}
	wait := r.random(lossJitter)
	if r.used == lossBurst { // empty: wait for the next token, and use that
		wait += r.since.Add(lossRefill).Sub(now)
		r.since = r.since.Add(lossRefill)
		return wait
	}
	r.used++
	return wait
}

// failed returns the wait after a dial or a login that failed.
func (r *reconnects) failed() time.Duration {
	most := min(firstBackoff<<min(r.failures, 6), idleBackoff)
	r.failures++
	return most/2 + r.random(most/2)
}

// backoffLeft is how much of a wait is left after some of it passed.
func backoffLeft(wait, passed time.Duration, queued bool) time.Duration {
	if queued {
		wait = min(wait, queuedBackoff)
	}
	return wait - passed
}
