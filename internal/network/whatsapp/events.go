package whatsapp

import (
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/wait"
)

// dispatchEvent handles one event of whatsmeow. It lists every kind, also ignored ones. It returns false for an event
// that the network must deliver again.
func (conn *connection) dispatchEvent(evt any) bool {
	switch e := evt.(type) {
	// Messages and receipts.
	case *events.Message:
		conn.s.evidence.received()
		return conn.handleMessage(e)
	case *events.Receipt:
		conn.s.evidence.received()
		return conn.handleReceipt(e)
	case *events.HistorySync:
		return conn.handleHistory(e)

	// The connection started or ended: run handles these.
	case *events.Connected, *events.Disconnected, *events.KeepAliveTimeout, *events.LoggedOut, *events.StreamReplaced,
		*events.StreamError, *events.TemporaryBan, *events.ConnectFailure, *events.ClientOutdated, *events.CATRefreshError,
		*events.ManualLoginReconnect:
		conn.post(e)
	case *events.KeepAliveRestored: // the connection was closed when the keepalive failed

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
	case *events.AppStateSyncError: // whatsmeow logs it
		conn.repairSettings(e)
	case *events.NotifyAccountReachoutTimelock:
		conn.setRestriction(e)

	case *events.Blocklist:
		conn.blocked.changed()
	case *events.UndecryptableMessage: // whatsmeow requests it again from the sender
		return conn.handleUnreadable(e)
	case *events.MediaRetry:
		conn.s.uploads.deliver(e.MessageID, e)
	case *events.FBMessage: // of another product
	case *events.OfflineSyncPreview, *events.OfflineSyncCompleted: // missed messages come as their own events
	case *events.IdentityChange: // a contact has a new phone; whatsmeow makes new keys

	// Ignored: whatsmeow stores names and numbers, and contacts are read from its store.
	case *events.Contact, *events.PushName, *events.BusinessName, *events.Picture, *events.UserAbout:
	// Ignored: the owner's actions in the phone's app.
	case *events.Archive, *events.Pin, *events.Mute, *events.Star, *events.DeleteForMe, *events.MarkChatAsRead,
		*events.ClearChat, *events.DeleteChat, *events.UnarchiveChatsSetting, *events.UserStatusMute,
		*events.LabelEdit, *events.LabelAssociationChat, *events.LabelAssociationMessage, *events.AppState, *events.PrivacySettings:
	case *events.JoinedGroup:
		return conn.handleJoinedGroup(e)
	case *events.GroupInfo:
		return conn.handleGroupInfo(e)
	// Ignored: presence.
	case *events.Presence, *events.ChatPresence:
	case *events.CallOffer:
		_, video := e.Data.GetOptionalChildByTag("video")
		return conn.handleCall(e.BasicCallMeta, parley.PhoneCall{Video: video})
	case *events.CallOfferNotice: // of a group
		return conn.handleCall(e.BasicCallMeta, parley.PhoneCall{Video: e.Media == "video"})
	case *events.CallTerminate:
		return conn.handleCall(e.BasicCallMeta, parley.PhoneCall{Ended: toCallEnd(e.Reason)})
	// Ignored: what happens during a call.
	case *events.CallAccept, *events.CallPreAccept, *events.CallTransport, *events.CallRelayLatency, *events.CallReject,
		*events.UnknownCallEvent:
	// Ignored: channels in the sense of the app, which broadcast.
	case *events.NewsletterJoin, *events.NewsletterLeave, *events.NewsletterMuteChange, *events.NewsletterLiveUpdate:
	default:
		conn.log.Warnf("an event of an unknown kind: %T", evt)
	}
	return true
}

func (conn *connection) setRestriction(e *events.NotifyAccountReachoutTimelock) {
	r := network.Restriction{Active: e.IsActive}
	if e.IsActive {
		r.Until = e.TimeEnforcementEnds.Time
	}
	conn.s.mu.Lock()
	conn.s.restricted = r
	conn.s.mu.Unlock()
	conn.s.enqueue(r)
}

// repairSettings fetches all settings of a kind again. What is stored may be broken, and then no change would ever be read.
func (conn *connection) repairSettings(e *events.AppStateSyncError) {
	if e.FullSync {
		return
	}
	conn.goBackground(func() {
		if err := conn.client.FetchAppState(conn.ctx, e.Name, true, false); err != nil {
			conn.log.Warnf("fetch all settings again: %v", err)
		}
	})
}
