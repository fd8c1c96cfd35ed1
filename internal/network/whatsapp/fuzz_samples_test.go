package whatsapp

import (
	"maps"
	"slices"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// el makes a node: bytes are its content, nodes its children.
func el(tag string, attrs waBinary.Attrs, content ...any) waBinary.Node {
	n := waBinary.Node{Tag: tag, Attrs: attrs}
	var children []waBinary.Node
	for _, c := range content {
		switch c := c.(type) {
		case waBinary.Node:
			children = append(children, c)
		case []byte:
			n.Content = c
		}
	}
	if children != nil {
		n.Content = children
	}
	return n
}

// clone copies a tree.
func clone(n waBinary.Node) waBinary.Node {
	n.Attrs = maps.Clone(n.Attrs)
	if n.Attrs == nil {
		n.Attrs = waBinary.Attrs{}
	}
	switch c := n.Content.(type) {
	case []waBinary.Node:
		children := make([]waBinary.Node, len(c))
		for i := range c {
			children[i] = clone(c[i])
		}
		n.Content = children
	case []byte:
		n.Content = slices.Clone(c)
	}
	return n
}

func sortedNames(attrs waBinary.Attrs) []string { return slices.Sorted(maps.Keys(attrs)) }

// oddAddresses are addresses of every kind.
func oddAddresses(own, other types.JID) []any {
	device := other
	device.Device = 99
	return []any{
		own, other, device, types.ServerJID, types.EmptyJID, types.PSAJID, types.StatusBroadcastJID, types.MetaAIJID,
		types.NewJID("1203630000000000", types.GroupServer), types.NewJID("1203630000000000", types.NewsletterServer),
		types.NewJID("1234", types.HostedServer), types.NewJID("1234", types.HostedLIDServer), types.NewJID("1234", types.BotServer),
		types.NewJID("1234", types.MessengerServer), types.NewJID("1-1234", types.InteropServer), types.NewJID("", types.GroupServer),
	}
}

// sampleStanzas has a stanza of every shape that whatsmeow has a handler for.
func sampleStanzas(own, ownLID, other, otherLID types.JID) []waBinary.Node {
	type a = waBinary.Attrs
	b := func(n int) []byte { return slices.Repeat([]byte{7}, n) }
	group := types.NewJID("1203630000000000", types.GroupServer)
	server := types.ServerJID
	message := func(more a, content ...any) waBinary.Node {
		attrs := a{"from": otherLID, "sender_pn": other, "id": "3A01", "t": "1700000000", "type": "text", "notify": "Ayu"}
		maps.Copy(attrs, more)
		return el("message", attrs, content...)
	}
	receipt := func(kind string, content ...any) waBinary.Node {
		return el("receipt", a{"from": otherLID, "sender_pn": other, "id": "3EB001", "t": "1700000000", "type": kind}, content...)
	}
	key := func(tag string) waBinary.Node {
		return el(tag, nil, el("id", nil, b(3)), el("value", nil, b(32)), el("signature", nil, b(64)))
	}
	all := []waBinary.Node{
		el("success", a{"t": "1700000000", "lid": ownLID, "location": "x"}),
		el("failure", a{"reason": "503", "code": "101", "expire": "10", "message": "x"}),
		el("failure", a{"reason": "413"}), el("failure", a{"reason": "414"}), el("failure", a{"reason": "418"}),
		el("stream:error", a{"code": "503"}), el("stream:error", a{"code": "413"}), el("stream:error", a{"code": "515"}),
		el("stream:error", nil, el("conflict", a{"type": "replaced"})),
		el("ib", a{"from": server}, el("offline_preview",
			a{"count": "1", "message": "1", "receipt": "0", "notification": "0", "appdata": "0"})),
		el("ib", a{"from": server}, el("offline", a{"count": "1"})),
		el("ib", a{"from": server}, el("dirty", a{"type": "groups", "timestamp": "1"})),
		el("ib", a{"from": server}, el("downgrade_webclient", nil)),
		el("iq", a{"from": server, "type": "set", "id": "P1", "xmlns": "md"},
			el("pair-device", nil, el("ref", nil, b(20)), el("ref", nil, b(20)))),
		el("iq", a{"from": server, "type": "set", "id": "P2", "xmlns": "md", "t": "1700000000"}, el("pair-success", nil,
			el("device-identity", nil, b(100)), el("device", a{"jid": own, "lid": ownLID}), el("platform", a{"name": "android"}),
			el("biz", a{"name": "Shop"}), el("client-props", nil, b(8)))),
		el("ack", a{"class": "message", "id": "3EB001", "from": otherLID, "t": "1700000000", "phash": "2:abcdefgh"}),
		el("call", a{"from": otherLID, "id": "C1", "t": "1700000000", "platform": "x", "version": "1"},
			el("offer", a{"call-creator": otherLID, "call-id": "1"})),
		el("call", a{"from": otherLID, "id": "C2", "t": "1700000000"},
			el("terminate", a{"call-creator": otherLID, "call-id": "1", "reason": "x"})),
		el("call", a{"from": otherLID, "id": "C3", "t": "1700000000"},
			el("offer_notice", a{"call-creator": otherLID, "call-id": "1", "media": "audio", "type": "group"})),
		el("chatstate", a{"from": otherLID}, el("composing", a{"media": "audio"})),
		el("chatstate", a{"from": group, "participant": otherLID}, el("paused", nil)),
		el("presence", a{"from": otherLID, "type": "unavailable", "last": "1700000000"}),
		el("status", a{"from": types.NewJID("1", types.NewsletterServer), "id": "S1", "t": "1700000000", "server_id": "5"},
			el("plaintext", nil, b(10))),
		el("appdata", a{"from": otherLID, "id": "A1", "t": "1700000000"}, el("enc", a{"v": "2", "type": "msg"}, b(50))),
		message(nil, el("enc", a{"v": "2", "type": "msg"}, b(100))),
		message(nil, el("enc", a{"v": "2", "type": "pkmsg", "count": "2"}, b(200))),
		message(a{"from": group, "participant": otherLID, "participant_pn": other, "addressing_mode": "lid"},
			el("enc", a{"v": "2", "type": "skmsg"}, b(100))),
		message(nil, el("unavailable", a{"type": "view_once"})),
		message(a{"from": own, "recipient": otherLID, "category": "peer"}, el("enc", a{"v": "2", "type": "msg"}, b(60))),
		message(a{"from": types.MetaAIJID}, el("enc", a{"v": "2", "type": "msmsg"}, b(60)), el("meta", a{"target_id": "3EB0",
			"target_sender_jid": own}), el("bot", a{"edit": "last", "edit_target_id": "1", "sender_timestamp_ms": "1"})),
		message(a{"from": types.StatusBroadcastJID, "participant": otherLID}, el("enc", a{"v": "3", "type": "skmsg"}, b(60)),
			el("participants", nil, el("to", a{"jid": otherLID}))),
		message(a{"from": types.NewJID("1", types.NewsletterServer), "server_id": "7"}, el("plaintext", nil, b(20)),
			el("meta", a{"msg_edit_t": "1", "original_msg_t": "1"})),
		message(nil, el("verified_name", a{"verified_level": "high"}, b(40)), el("enc", a{"v": "2", "type": "msg"}, b(80)),
			el("multicast", nil), el("franking", nil)),
		receipt(""), receipt("read", el("list", nil, el("item", a{"id": "3EB002"}), el("item", a{"id": "3EB003"}))), receipt("played"),
		receipt("inactive"), receipt("server-error"),
		receipt("retry", el("retry", a{"count": "1", "id": "3EB001", "t": "1700000000", "v": "1"}), el("registration", nil, b(4)),
			el("keys", nil, el("type", nil, b(1)), el("identity", nil, b(32)), key("key"), key("skey"), el("device-identity", nil, b(60)))),
		el("receipt", a{"from": group, "id": "3EB001", "t": "1700000000"},
			el("participants", a{"key": "3EB001"}, el("user", a{"jid": otherLID, "t": "1700000000"}))),
	}
	return append(all, sampleNotifications(own, ownLID, other, otherLID)...)
}

func sampleNotifications(own, ownLID, other, otherLID types.JID) []waBinary.Node {
	type a = waBinary.Attrs
	b := func(n int) []byte { return slices.Repeat([]byte{7}, n) }
	group := types.NewJID("1203630000000000", types.GroupServer)
	server := types.ServerJID
	notify := func(from types.JID, kind string, content ...any) waBinary.Node {
		return el("notification", a{"from": from, "type": kind, "id": "N1", "t": "1700000000"}, content...)
	}
	return []waBinary.Node{
		notify(server, "encrypt", el("count", a{"value": "3"})), notify(otherLID, "encrypt", el("identity", nil, b(32))),
		notify(own, "server_sync", el("collection", a{"name": "regular", "version": "3"})),
		notify(own, "server_sync", el("collection", a{"name": "nonsense", "version": "x"})),
		notify(own, "account_sync", el("devices", a{"dhash": "2:abcdefgh"}, el("device", a{"jid": own}),
			el("key-index-list", a{"ts": "1"}, b(30)))),
		notify(own, "account_sync", el("privacy", nil, el("category", a{"name": "last", "value": "all"}))), notify(own, "account_sync",
			el("blocklist", a{"dhash": "1", "action": "modify"}, el("item", a{"jid": other, "action": "block"}))),
		notify(own, "account_sync", el("picture", nil)),
		notify(other, "devices", el("add", a{"device_hash": "2:abcdefgh", "device_lid_hash": "2:abcdefgh"},
			el("device", a{"jid": other, "lid": otherLID}))),
		notify(otherLID, "devices", el("remove", a{"device_hash": "2:abcdefgh"}, el("device", a{"jid": otherLID}))),
		notify(otherLID, "devices", el("update", a{"hash": "x"})),
		notify(otherLID, "fbid:devices", el("devices", a{"dhash": "x"}, el("device-list", nil, el("device", a{"id": "0"})))),
		notify(group, "w:gp2", el("add", nil, el("participant", a{"jid": otherLID, "phone_number": other, "type": "admin"}))),
		notify(group, "w:gp2", el("create", a{"type": "new", "reason": "x", "key": "x"}, el("group", a{"id": "1203", "subject": "x",
			"creation": "1700000000", "creator": own, "s_t": "1700000000", "s_o": own}, el("participant", a{"jid": otherLID})))),
		notify(group, "w:gp2", el("subject", a{"subject": "x", "s_t": "1700000000", "s_o": otherLID})),
		notify(group, "w:gp2", el("description", a{"id": "1"}, el("body", nil, b(10)))),
		notify(group, "w:gp2", el("ephemeral", a{"expiration": "10"}), el("locked", nil), el("announcement", nil),
			el("invite", a{"code": "x"}), el("link", a{"link_type": "parent_group"}, el("group", a{"jid": group, "subject": "x"}))),
		notify(otherLID, "picture", el("set", a{"jid": otherLID, "id": "1", "author": otherLID, "hash": "x"}),
			el("delete", a{"jid": otherLID})),
		notify(otherLID, "mediaretry", el("encrypt", nil, el("enc_p", nil, b(40)), el("enc_iv", nil, b(12))),
			el("rmr", a{"jid": otherLID, "from_me": "true", "participant": otherLID}), el("error", a{"code": "2"})),
		notify(otherLID, "privacy_token", el("tokens", nil, el("token", a{"type": "trusted_contact", "t": "1700000000"}, b(16)))),
		notify(server, "link_code_companion_reg", el("link_code_companion_reg", a{"stage": "primary_hello"},
			el("link_code_pairing_wrapped_primary_ephemeral_pub", nil, b(80)), el("primary_identity_pub", nil, b(32)),
			el("link_code_pairing_ref", nil, b(10)))),
		notify(types.NewJID("1", types.NewsletterServer), "newsletter",
			el("live_updates", nil, el("message", a{"server_id": "1", "id": "1", "type": "x", "t": "1"}, el("plaintext", nil, b(10)),
				el("reactions", nil, el("reaction", a{"code": "x", "count": "1"}))))),
		notify(server, "mex", el("update", a{"op_name": "NotificationUserReachoutTimelockUpdate"},
			[]byte(`{"data":{"xwa2_notify_account_reachout_timelock":{"is_active":true,"time_enforcement_ends":"1700000000"},`+
				`"xwa2_notify_newsletter_on_join":{}}}`))),
		notify(otherLID, "status", el("set", nil, []byte("about"))),
		notify(server, "passkey_prologue_request", el("passkey_prologue_request", nil, []byte(`{"challenge":"x"}`))),
		notify(server, "crsc_continuation", el("crsc_continuation", nil, b(64))),
	}
}
