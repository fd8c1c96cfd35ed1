package whatsapp

import (
	"time"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/wait"
)

// dispatchEvent handles one event of whatsmeow. Every kind is named, also those that nothing follows from. It
// reports false for what is to come again.
func (conn *connection) dispatchEvent(evt any) bool {
	switch e := evt.(type) {
	// Somebody said or did something.
	case *events.Message:
		conn.s.evidence.received()
		return conn.handleMessage(e)
	case *events.Receipt:
		conn.s.evidence.received()
		return conn.handleReceipt(e)
	case *events.HistorySync:
		return conn.handleHistory(e)

	// The connection began or ended: run decides what follows.
	case *events.Connected, *events.Disconnected, *events.KeepAliveTimeout, *events.LoggedOut, *events.StreamReplaced,
		*events.StreamError, *events.TemporaryBan, *events.ConnectFailure, *events.ClientOutdated, *events.CATRefreshError,
		*events.ManualLoginReconnect:
		conn.post(e)
	case *events.KeepAliveRestored: // the line was given up when it failed

	// Pairing.
	case *events.QR, *events.PairSuccess, *events.PairError, *events.QRScannedWithoutMultidevice,
		*events.PairPasskeyRequest, *events.PairPasskeyError, *events.PairPasskeyConfirmation:
		conn.post(e)

	// The account's own settings.
	case *events.AppStateSyncComplete:
		wait.Notify(conn.synced)
		if e.Name == appstate.WAPatchCriticalBlock { // it has the account's name
			conn.post(e)
		}
	case *events.PushNameSetting:
		conn.post(e)
	case *events.AppStateSyncError: // whatsmeow logged it; the next change of ours tries to repair it
	case *events.NotifyAccountReachoutTimelock:
		conn.setRestriction(e)

	case *events.Blocklist:
		conn.blocked.changed()
	case *events.UndecryptableMessage: // whatsmeow asks the sender and our phone for it again
	case *events.MediaRetry:
		conn.s.uploads.deliver(e)
	case *events.FBMessage: // of another product
	case *events.OfflineSyncPreview, *events.OfflineSyncCompleted: // what we missed comes as events of its own
	case *events.IdentityChange: // a contact has a new phone; whatsmeow makes new keys

	// Ignored: whatsmeow keeps names and numbers in its store, where contacts are read from.
	case *events.Contact, *events.PushName, *events.BusinessName, *events.Picture, *events.UserAbout:
	// Ignored: what the owner does in the app on the phone is not the gateway's history.
	case *events.Archive, *events.Pin, *events.Mute, *events.Star, *events.DeleteForMe, *events.MarkChatAsRead,
		*events.ClearChat, *events.DeleteChat, *events.UnarchiveChatsSetting, *events.UserStatusMute,
		*events.LabelEdit, *events.LabelAssociationChat, *events.LabelAssociationMessage, *events.AppState, *events.PrivacySettings:
	// Ignored: groups are read when somebody asks.
	case *events.JoinedGroup, *events.GroupInfo:
	// Ignored: nobody asked to be told who is online or types.
	case *events.Presence, *events.ChatPresence:
	// Ignored: we take no calls.
	case *events.CallOffer, *events.CallAccept, *events.CallPreAccept, *events.CallTransport, *events.CallOfferNotice,
		*events.CallRelayLatency, *events.CallTerminate, *events.CallReject, *events.UnknownCallEvent:
	// Ignored: channels in the sense of the app, which broadcast.
	case *events.NewsletterJoin, *events.NewsletterLeave, *events.NewsletterMuteChange, *events.NewsletterLiveUpdate:
	default:
		conn.log.Warnf("an event of an unknown kind: %T", evt)
	}
	return true
}

// setRestriction notes until when the network does not let the account write to people who never wrote to it.
func (conn *connection) setRestriction(e *events.NotifyAccountReachoutTimelock) {
	conn.s.mu.Lock()
	defer conn.s.mu.Unlock()
	conn.s.restricted = time.Time{}
	if e.IsActive {
		conn.s.restricted = e.TimeEnforcementEnds.Time
	}
}
