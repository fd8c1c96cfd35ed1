package whatsapp

import (
	"errors"
	"fmt"
	"time"

	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
)

// end is how a connection ended and what follows.
type end struct {
	status   parley.ChannelStatus // Reconnecting: it comes back by itself
	reason   string
	unpaired bool          // the account has no such device any more: it must be paired again
	after    time.Duration // when to try again, where it does not come back by itself; zero: never
	now      bool          // comes back without waiting
}

const (
	// refusedFor is how long we wait after a login was refused for a reason that we do not know.
	refusedFor = 30 * time.Minute
	pairAgain  = " Pair the channel again."
)

// endOf says what an event of whatsmeow means for the connection; false: nothing.
func endOf(evt any) (end, bool) {
	switch e := evt.(type) {
	case *events.Disconnected:
		return end{status: parley.Reconnecting, reason: "The connection to WhatsApp was lost. It is being made again."}, true
	case *events.KeepAliveTimeout:
		return end{status: parley.Reconnecting, reason: "WhatsApp stopped answering. The connection is being made again."}, true
	case *events.ManualLoginReconnect: // stream error 515
		return end{status: parley.Reconnecting, reason: "WhatsApp asked for a new connection.", now: true}, true
	case *events.StreamError:
		return end{status: parley.Reconnecting, reason: fmt.Sprintf("WhatsApp ended the connection with error %q. It is being made again.", e.Code)}, true
	case *events.LoggedOut:
		return logoutEnd(e), true
	case *events.StreamReplaced:
		return end{status: parley.Failed, reason: "Another program connected as this device. Stop it, then start the channel again."}, true
	case *events.TemporaryBan:
		return banEnd(e), true
	case *events.ClientOutdated:
		return end{status: parley.Failed, reason: "WhatsApp does not accept this version of the program any more. Upgrade it."}, true
	case *events.ConnectFailure:
		return end{status: parley.Failed, after: refusedFor,
			reason: fmt.Sprintf("WhatsApp refused the login with code %d. It is tried again in half an hour; start the channel to try at once.", int(e.Reason))}, true
	case *events.CATRefreshError: // tokens of another product
		return end{status: parley.Failed, reason: "WhatsApp asked for a token that this device does not have." + pairAgain}, true
	}
	return end{}, false
}

// logoutEnd tells apart why the device is no more. whatsmeow has deleted its keys in every case.
func logoutEnd(e *events.LoggedOut) end {
	switch e.Reason {
	case events.ConnectFailureMainDeviceGone:
		return end{status: parley.LoggedOut, unpaired: true,
			reason: "WhatsApp locked the account or logged its phone out. Open WhatsApp on the phone and do what it asks." + pairAgain}
	case events.ConnectFailureUnknownLogout:
		return end{status: parley.Failed, unpaired: true,
			reason: "WhatsApp banned the account. Open WhatsApp on the phone to ask for a review; once it works there, pair the channel again."}
	}
	return end{status: parley.LoggedOut, unpaired: true, reason: "The account removed this device." + pairAgain}
}

// banReasons are the network's reasons for a ban that ends, in our words.
var banReasons = map[events.TempBanReason]string{
	events.TempBanSentToTooManyPeople:    "it wrote to too many people who do not have it in their address book",
	events.TempBanBlockedByUsers:         "too many people blocked it",
	events.TempBanCreatedTooManyGroups:   "it made too many groups with people who do not have it in their address book",
	events.TempBanSentTooManySameMessage: "it sent the same message to too many people",
	events.TempBanBroadcastList:          "it sent too much to a broadcast list",
}

func banEnd(e *events.TemporaryBan) end {
	why, ok := banReasons[e.Code]
	if !ok {
		why = fmt.Sprintf("code %d", int(e.Code))
	}
	if e.Expire <= 0 {
		return end{status: parley.Failed, after: refusedFor, reason: fmt.Sprintf("WhatsApp banned the account for a time: %s.", why)}
	}
	until := time.Now().Add(e.Expire)
	return end{status: parley.Failed, after: e.Expire,
		reason: fmt.Sprintf("WhatsApp banned the account until %s: %s. The channel comes back then.", until.UTC().Format("2006-01-02 15:04 UTC"), why)}
}

// dialEnd is the end of a connection that could not be made.
func dialEnd(err error) end {
	return end{status: parley.Reconnecting, reason: dialProblem(err) + " It is tried again."}
}

// dialProblem says why a connection could not be made.
func dialProblem(err error) string {
	if status, ok := errors.AsType[socket.ErrWithStatusCode](err); ok {
		return fmt.Sprintf("WhatsApp answered with HTTP status %d.", status.StatusCode)
	}
	return unreachable(err)
}

var (
	loginEnd  = end{status: parley.Reconnecting, reason: "WhatsApp did not answer the login in time. It is tried again."}
	logoutOwn = end{status: parley.LoggedOut, unpaired: true, reason: "The channel was logged out." + pairAgain}
	// logoutAlone is a logout that the network could not be told of.
	logoutAlone = end{status: parley.LoggedOut, unpaired: true,
		reason: "The channel was logged out here, without a connection: remove the device on the phone too, under Linked devices." + pairAgain}
	keysGone = end{status: parley.LoggedOut, unpaired: true, reason: "The keys of this device are not there any more." + pairAgain}
)
