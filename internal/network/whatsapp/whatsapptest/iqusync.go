package whatsapptest

import (
	"maps"
	"strings"

	"go.mau.fi/whatsmeow/types"
)

// usync answers questions about people: their devices, their LID, whether a number is on the network. The
// caller holds the lock.
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
		return n("user", attrs{"jid": a.pn(0)}, contact)
	}
	return n("user", attrs{"jid": a.hidden(0), "pn_jid": a.pn(0)}, contact)
}

// usyncUser answers each question about one person, in the form of address that was asked.
func (s *Server) usyncUser(who types.JID, query *node) node {
	out := n("user", attrs{"jid": who})
	a := s.find(who)
	if a == nil || (a.shown == OnlyLID && who.Server == types.DefaultUserServer) || (a.shown == OnlyNumber && who.Server == types.HiddenUserServer) {
		return out
	}
	var answers []node
	for _, q := range query.GetChildren() {
		switch q.Tag {
		case "devices":
			answers = append(answers, n("devices", nil, deviceList(a)))
		case "lid":
			if a.shown != OnlyNumber {
				answers = append(answers, n("lid", attrs{"val": a.hidden(0)}))
			}
		case "status":
			answers = append(answers, leaf("status", []byte(a.about)))
		case "picture":
			if a.pictureURL != "" {
				answers = append(answers, n("picture", attrs{"id": "1"}))
			}
		case "business", "contact", "disappearing_mode", "username": // nobody here has any
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
