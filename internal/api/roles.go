package api

import (
	"context"
	"fmt"

	"parley"
	"parley/internal/token"
)

// leastRole is the least role that may call a route, as an admin token or in the console. A route that is missing here needs an
// owner. Viewers read everything but secrets. What other roles may do besides is in [parley.Roles].
var leastRole = map[string]parley.Role{
	"GET /api/manage/me":                   parley.Viewer,
	"POST /api/manage/sign-in-link":        parley.Viewer, // for the own role
	"GET /api/manage/audit":                parley.Viewer,
	"GET /api/manage/sessions":             parley.Viewer, // the own ones; an owner sees all
	"DELETE /api/manage/sessions":          parley.Viewer,
	"DELETE /api/manage/sessions/{id}":     parley.Viewer,
	"GET /api/manage/overview":             parley.Viewer,
	"GET /api/manage/stats":                parley.Viewer,
	"GET /api/manage/server":               parley.Viewer,
	"GET /api/manage/doctor":               parley.Viewer,
	"GET /api/manage/nodes":                parley.Viewer,
	"POST /api/manage/nodes/{id}/drain":    parley.Operator,
	"PATCH /api/manage/log-level":          parley.Operator,
	"GET /api/manage/diagnostics":          parley.Operator,
	"GET /api/manage/diagnostics/contents": parley.Operator,
	"POST /api/manage/backup":              parley.Operator,
	"GET /api/manage/backup/file":          parley.Owner, // it has every key
	"GET /api/manage/backup/now":           parley.Owner,
	"GET /api/manage/events":               parley.Viewer,
	"GET /api/manage/events/recent":        parley.Viewer,
	"POST /mcp":                            parley.Viewer, // its tools call other routes, which check the role too

	"GET /api/manage/tokens":              parley.Viewer,
	"POST /api/manage/tokens":             parley.Owner,
	"PATCH /api/manage/tokens/{id}":       parley.Owner,
	"DELETE /api/manage/tokens/{id}":      parley.Owner,
	"POST /api/manage/signing-key/rotate": parley.Owner,

	"GET /api/manage/channels":                       parley.Viewer,
	"POST /api/manage/channels":                      parley.Operator,
	"GET /api/manage/channels/{code}":                parley.Viewer,
	"PATCH /api/manage/channels/{code}":              parley.Operator,
	"DELETE /api/manage/channels/{code}":             parley.Operator,
	"GET /api/manage/deletions":                      parley.Viewer,
	"POST /api/manage/channels/{code}/start":         parley.Operator,
	"POST /api/manage/channels/{code}/stop":          parley.Operator,
	"POST /api/manage/channels/{code}/logout":        parley.Operator,
	"POST /api/manage/channels/{code}/go-live":       parley.Operator,
	"POST /api/manage/channels/{code}/pair":          parley.Operator,
	"GET /api/manage/channels/{code}/pairing":        parley.Operator, // it has the code to scan
	"POST /api/manage/channels/{code}/pair-link":     parley.Operator,
	"GET /api/manage/channels/{code}/timeline":       parley.Viewer,
	"GET /api/manage/channels/{code}/requests":       parley.Viewer,
	"GET /api/manage/channels/{code}/secret":         parley.Operator,
	"POST /api/manage/channels/{code}/secret/rotate": parley.Operator,

	"GET /api/manage/webhooks":               parley.Viewer,
	"POST /api/manage/webhooks":              parley.Operator,
	"GET /api/manage/webhooks/{id}":          parley.Viewer,
	"PATCH /api/manage/webhooks/{id}":        parley.Operator,
	"DELETE /api/manage/webhooks/{id}":       parley.Operator,
	"POST /api/manage/webhooks/{id}/retry":   parley.Operator,
	"POST /api/manage/webhooks/{id}/test":    parley.Operator,
	"GET /api/manage/webhooks/{id}/secret":   parley.Operator,
	"POST /api/manage/webhooks/{id}/rotate":  parley.Operator,
	"GET /api/manage/listen-secret":          parley.Operator,
	"GET /api/manage/deliveries":             parley.Viewer,
	"GET /api/manage/deliveries/export":      parley.Viewer, // who may read may export; it is in the audit log
	"GET /api/manage/deliveries/{id}":        parley.Viewer,
	"POST /api/manage/deliveries/{id}/retry": parley.Operator,
	"POST /api/manage/deliveries/replay":     parley.Operator,

	"GET /api/manage/alerts":            parley.Viewer,
	"POST /api/manage/alerts":           parley.Operator,
	"PUT /api/manage/alerts/{id}":       parley.Operator,
	"DELETE /api/manage/alerts/{id}":    parley.Operator,
	"POST /api/manage/alerts/{id}/test": parley.Operator,

	"GET /api/manage/messages":                     parley.Viewer,
	"GET /api/manage/messages/export":              parley.Viewer,
	"GET /api/manage/messages/{message_id}":        parley.Viewer,
	"GET /api/manage/messages/{message_id}/media":  parley.Viewer,
	"GET /api/manage/find":                         parley.Viewer,
	"GET /api/manage/otp":                          parley.Viewer,
	"GET /api/manage/chats":                        parley.Viewer,
	"GET /api/manage/channels/{code}/chats":        parley.Viewer,
	"GET /api/manage/channels/{code}/chats/{chat}": parley.Viewer,
	"GET /api/manage/contacts/{contact}":           parley.Viewer,

	// What follows is for channel tokens and Global ones. Of admins only the console calls it.
	"POST /api/send-message/text":         parley.Support,
	"POST /api/send-message/image":        parley.Support,
	"POST /api/send-message/video":        parley.Support,
	"POST /api/send-message/file":         parley.Support,
	"POST /api/media":                     parley.Support,
	"GET /api/media/{id}":                 parley.Viewer,
	"POST /api/send-message/voice":        parley.Support,
	"POST /api/send-message/sticker":      parley.Support,
	"POST /api/send-message/location":     parley.Support,
	"POST /api/send-message/contact":      parley.Support,
	"POST /api/send-message/poll":         parley.Support,
	"POST /api/send-message/polling":      parley.Support,
	"POST /api/send-message/pool":         parley.Support,
	"PUT /api/send-message/reaction":      parley.Support,
	"PUT /api/send-message/react":         parley.Support,
	"PUT /api/send-message/edit":          parley.Support,
	"POST /api/send-message/seen":         parley.Support,
	"DELETE /api/send-message/delete":     parley.Support,
	"PUT /api/send-message/star":          parley.Support,
	"POST /api/send-message/typing":       parley.Support,
	"POST /api/send-message/stop-typing":  parley.Support,
	"GET /api/chat":                       parley.Viewer,
	"GET /api/chat/all":                   parley.Viewer,
	"GET /api/chat/detail":                parley.Viewer,
	"GET /api/chat/details":               parley.Viewer,
	"POST /api/chat/archive":              parley.Support,
	"POST /api/chat/un-archive":           parley.Support,
	"POST /api/chat/unarchive":            parley.Support,
	"GET /api/contact":                    parley.Viewer,
	"GET /api/contact/all":                parley.Viewer,
	"GET /api/contact/info":               parley.Viewer,
	"GET /api/contact/detail":             parley.Viewer,
	"GET /api/contact/picture":            parley.Viewer,
	"GET /api/groups":                     parley.Viewer,
	"GET /api/groups/all":                 parley.Viewer,
	"POST /api/groups/create":             parley.Operator,
	"GET /api/groups/participants":        parley.Viewer,
	"POST /api/groups/participant":        parley.Viewer,
	"POST /api/groups/add":                parley.Operator,
	"POST /api/groups/remove":             parley.Operator,
	"POST /api/groups/leave":              parley.Operator,
	"GET /api/groups/invite":              parley.Operator,
	"GET /api/channel/health":             parley.Viewer,
	"GET /api/channel/check-phone-number": parley.Support, // it asks the network
	"POST /api/otp/code/request":          parley.Operator,
	"POST /api/otp/code/global":           parley.Operator,
	"POST /api/otp/code/validate":         parley.Operator,
	"POST /api/otp/link/request":          parley.Operator,
	"POST /api/otp/link/global":           parley.Operator,
	"GET /api/otp/link/{id}":              parley.Viewer,
	"GET /api/events/recent":              parley.Viewer,
	"GET /api/messages":                   parley.Viewer,
	"GET /api/messages/{message_id}":      parley.Viewer,
	"GET /api/events":                     parley.Viewer,

	"GET /api/sandbox/cursor":                             parley.Viewer,
	"GET /api/sandbox/phones":                             parley.Viewer,
	"POST /api/sandbox/phones":                            parley.Support,
	"PATCH /api/sandbox/phones/{number}":                  parley.Support,
	"GET /api/sandbox/phones/{number}/messages":           parley.Viewer,
	"GET /api/sandbox/phones/{number}/chats":              parley.Viewer,
	"GET /api/sandbox/phones/{number}/chat":               parley.Viewer,
	"GET /api/sandbox/phones/{number}/media/{message_id}": parley.Viewer,
	"POST /api/sandbox/phones/{number}/send":              parley.Support,
	"POST /api/sandbox/phones/{number}/group":             parley.Support,
	"POST /api/sandbox/phones/{number}/read":              parley.Support,
	"POST /api/sandbox/phones/{number}/open":              parley.Support,
	"GET /api/sandbox/faults":                             parley.Viewer,
	"POST /api/sandbox/faults":                            parley.Operator,
	"DELETE /api/sandbox/faults":                          parley.Operator,
	"POST /api/sandbox/clock":                             parley.Operator,
	"GET /api/sandbox/listeners":                          parley.Viewer,
	"DELETE /api/sandbox":                                 parley.Operator,
}

// permitRole refuses an admin token or a console session whose role does not suffice.
func (rt *route) permitRole(t parley.Token) error {
	if rt.input == noRoute || t.Kind != console && t.Kind != parley.AdminToken {
		return nil
	}
	if least := rt.leastRole(); !t.Role.Includes(least) {
		return lacksRole(t, least)
	}
	return nil
}

func (rt *route) leastRole() parley.Role {
	if least, listed := leastRole[rt.name()]; listed {
		return least
	}
	return parley.Owner
}

// lacksRole is the error of a caller that needs another role.
func lacksRole(t parley.Token, least parley.Role) error {
	if t.Kind == console {
		return parley.Errorf(parley.Forbidden, "This needs the role %s. You are signed in as %s. Ask an owner for a link with that role.",
			least, t.Role)
	}
	return insufficient(fmt.Sprintf("This needs the role %s. This token has the role %s. "+
		"An owner can change it with: parley token set %s --role %s", least, t.Role, t.ID, least))
}

// role reads the field role; empty: it was not sent.
func (r *request) role() parley.Role {
	if !r.Has("role") {
		return ""
	}
	return parley.Role(r.Choice("role", true, parley.RoleNames()...))
}

type meData struct {
	ID   parley.TokenID `json:"id"`
	Name string         `json:"name"`
	Kind string         `json:"kind"` // token, session or local
	Role parley.Role    `json:"role"`
}

// readMe says who the caller is and what role it has.
func (s *server) readMe(_ context.Context, r *request) (any, error) {
	me := meData{ID: r.token.ID, Name: r.token.Name, Kind: "token", Role: r.token.Role}
	switch {
	case r.token.Kind == console:
		me.Kind = "session"
	case token.IsLocal(r.token):
		me.Kind = "local"
	}
	return ok("OK", me), nil
}
