package whatsapptest

import (
	"maps"
	"slices"
	"strings"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/types"
)

// keyCount is how many one-time keys a device has here. For a new device it counts one key too many: the device then
// uploads 50 keys instead of 812, and pairing costs a tenth.
func (d *device) keyCount() int {
	if len(d.keys.oneTime) == 0 && d.keys.signed.id == 0 {
		return 1
	}
	return len(d.keys.oneTime)
}

// uploadKeys stores the keys of a client. The caller holds the lock.
func (s *Server) uploadKeys(c *conn, d *device, q *node) {
	signed, signature, ok := readKey(q.GetChildByTag("skey"))
	identity := content(q.GetChildByTag("identity"))
	if !ok || !slices.Equal(identity, d.keys.identity[:]) || len(signature) != 64 ||
		!ecc.VerifySignature(ecc.NewDjbECPublicKey(d.keys.identity), append([]byte{ecc.DjbType}, signed.pub[:]...), [64]byte(signature)) {
		s.violateLocked("upload of keys that are not signed by the device's identity")
		c.replyError(q, 406, "not-acceptable")
		return
	}
	d.keys.registration = from24(content(q.GetChildByTag("registration")))
	d.keys.signed, d.keys.signature = signed, [64]byte(signature)
	list := q.GetChildByTag("list")
	for _, child := range list.GetChildren() {
		k, _, ok := readKey(child)
		if !ok {
			s.violateLocked("upload of a malformed key")
			continue
		}
		d.keys.oneTime = append(d.keys.oneTime, k)
	}
	c.reply(q)
	s.changed.notify()
}

func readKey(k node) (publicKey, []byte, bool) {
	id, value := content(k.GetChildByTag("id")), content(k.GetChildByTag("value"))
	if len(id) != 3 || len(value) != 32 {
		return publicKey{}, nil, false
	}
	return publicKey{from24(id), [32]byte(value)}, content(k.GetChildByTag("signature")), true
}

// bundles returns keys under the requested form of address. The caller holds the lock.
func (s *Server) bundles(asked *node) node {
	var users []node
	for _, u := range asked.GetChildren() {
		who := jid(&u, "jid")
		d := s.findDevice(who)
		if d == nil || d.public().signed.id == 0 {
			users = append(users, n("user", attrs{"jid": who}, n("error", attrs{"code": 404, "text": "item-not-found"})))
			continue
		}
		users = append(users, n("user", attrs{"jid": who}, s.bundle(d)...))
	}
	return n("list", nil, users...)
}

// bundle lists the keys of a device and uses one of them up.
func (s *Server) bundle(d *device) []node {
	out := []node{leaf("registration", be32(d.public().registration))}
	out = append(out, d.keyNodes(d.useOneTimeKey())...)
	if len(d.adv) > 0 {
		out = append(out, leaf("device-identity", d.adv))
	}
	return out
}

// keyNodes encodes the keys of a device, with an optional one-time key.
func (d *device) keyNodes(oneTime publicKey, ok bool) []node {
	k := d.public()
	out := []node{
		leaf("type", []byte{ecc.DjbType}),
		leaf("identity", k.identity[:]),
		n("skey", nil, leaf("id", be24(k.signed.id)), leaf("value", k.signed.pub[:]), leaf("signature", k.signature[:])),
	}
	if ok {
		out = append(out, n("key", nil, leaf("id", be24(oneTime.id)), leaf("value", oneTime.pub[:])))
	}
	return out
}

// public are the keys of a device that others may ask for. The caller holds the lock.
func (d *device) public() publicKeys {
	if d.sim != nil {
		return d.sim.store.public()
	}
	return d.keys
}

// useOneTimeKey uses up a one-time key. A simulated device creates them on demand.
func (d *device) useOneTimeKey() (publicKey, bool) {
	if d.sim != nil {
		return d.sim.store.newPreKey(), true
	}
	if len(d.keys.oneTime) == 0 {
		return publicKey{}, false
	}
	k := d.keys.oneTime[0]
	d.keys.oneTime = d.keys.oneTime[1:]
	return k, true
}

// usync responds to queries about accounts: devices, LID, whether a number exists. The caller holds the lock.
func (s *Server) usync(asked *node) node {
	query, list := asked.GetChildByTag("query"), asked.GetChildByTag("list")
	var users []node
	for _, u := range list.GetChildren() {
		if contact, ok := u.GetOptionalChildByTag("contact"); ok {
			users = append(users, s.usyncContact(string(content(contact))))
			continue
		}
		users = append(users, s.usyncUser(jid(&u, "jid"), &query))
	}
	return n("usync", maps.Clone(asked.Attrs), n("result", nil), node{Tag: "list", Content: users})
}

// usyncContact says whether a number, as it was typed, is on the network.
func (s *Server) usyncContact(asked string) node {
	number, _, _ := strings.Cut(asked, "@")
	number = strings.TrimPrefix(number, "+")
	contact := leaf("contact", []byte(asked))
	a := s.byNumber[number]
	if a == nil {
		a = s.aliases[number]
	}
	if a == nil || a.shown == OnlyLID {
		contact.Attrs = attrs{"type": "out"}
		return n("user", attrs{"jid": types.NewJID(number, types.DefaultUserServer)}, contact)
	}
	contact.Attrs = attrs{"type": "in"}
	if a.shown == OnlyNumber {
		return n("user", attrs{"jid": a.pnJID(0)}, contact)
	}
	return n("user", attrs{"jid": a.lidJID(0), "pn_jid": a.pnJID(0)}, contact)
}

// usyncUser responds to each query about one account, under the requested form of address.
func (s *Server) usyncUser(who types.JID, query *node) node {
	out := n("user", attrs{"jid": who})
	a := s.find(who)
	if a == nil || (a.shown == OnlyLID && who.Server == types.DefaultUserServer) ||
		(a.shown == OnlyNumber && who.Server == types.HiddenUserServer) {
		return out
	}
	var answers []node
	for _, q := range query.GetChildren() {
		switch q.Tag {
		case "devices":
			answers = append(answers, n("devices", nil, deviceList(a)))
		case "lid":
			if a.shown != OnlyNumber {
				answers = append(answers, n("lid", attrs{"val": a.lidJID(0)}))
			}
		case "status":
			answers = append(answers, leaf("status", []byte(a.about)))
		case "picture":
			if a.pictureURL != "" {
				answers = append(answers, n("picture", attrs{"id": "1"}))
			}
		case "business", "contact", "disappearing_mode", "username": // not simulated
		default:
			s.violateLocked("unknown question about a person <%s>", q.Tag)
		}
	}
	out.Content = answers
	return out
}

func deviceList(a *account) node {
	var all []node
	for _, id := range a.deviceIDs() {
		x := attrs{"id": int(id)}
		if id != 0 {
			x["key-index"] = int(id)
		}
		all = append(all, n("device", x))
	}
	return n("device-list", nil, all...)
}
