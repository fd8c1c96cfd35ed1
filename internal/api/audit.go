package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/token"
)

// auditedActions names the acts of the audit log by route. Reading is not logged, except of secrets, backups and
// exports.
var auditedActions = map[string]string{
	"POST /api/manage/channels":                      "channel.create",
	"PATCH /api/manage/channels/{code}":              "channel.change",
	"DELETE /api/manage/channels/{code}":             "channel.delete",
	"POST /api/manage/channels/{code}/start":         "channel.start",
	"POST /api/manage/channels/{code}/stop":          "channel.stop",
	"POST /api/manage/channels/{code}/pair":          "channel.pair",
	"POST /api/manage/channels/{code}/pair-link":     "channel.pair_link",
	"POST /api/manage/channels/{code}/go-live":       "channel.go_live",
	"POST /api/manage/channels/{code}/logout":        "channel.logout",
	"GET /api/manage/channels/{code}/secret":         "channel.show_secret",
	"POST /api/manage/channels/{code}/secret/rotate": "channel.rotate_secret",
	"POST /api/manage/webhooks":                      "webhook.create",
	"PATCH /api/manage/webhooks/{id}":                "webhook.change",
	"DELETE /api/manage/webhooks/{id}":               "webhook.delete",
	"POST /api/manage/webhooks/{id}/retry":           "webhook.retry",
	"POST /api/manage/webhooks/{id}/test":            "webhook.test",
	"GET /api/manage/webhooks/{id}/secret":           "webhook.show_secret",
	"POST /api/manage/webhooks/{id}/rotate":          "webhook.rotate_secret",
	"GET /api/manage/listen-secret":                  "server.show_listen_secret",
	"POST /api/manage/deliveries/{id}/retry":         "delivery.retry",
	"POST /api/manage/deliveries/replay":             "delivery.replay",
	"GET /api/manage/deliveries/export":              "delivery.export",
	"GET /api/manage/messages/export":                "message.export",
	"POST /api/manage/alerts":                        "alert.create",
	"PUT /api/manage/alerts/{id}":                    "alert.change",
	"DELETE /api/manage/alerts/{id}":                 "alert.delete",
	"POST /api/manage/alerts/{id}/test":              "alert.test",
	"POST /api/manage/tokens":                        "token.create",
	"PATCH /api/manage/tokens/{id}":                  "token.change",
	"DELETE /api/manage/tokens/{id}":                 "token.revoke",
	"POST /api/manage/signing-key/rotate":            "token.rotate_key",
	"POST /api/manage/sign-in-link":                  "session.link",
	"DELETE /api/manage/sessions":                    "session.end_others",
	"DELETE /api/manage/sessions/{id}":               "session.end",
	"POST /api/manage/nodes/{id}/drain":              "node.drain",
	"POST /api/manage/backup":                        "server.backup",
	"GET /api/manage/backup/file":                    "server.download_backup",
	"GET /api/manage/backup/now":                     "server.download_backup",
	"PATCH /api/manage/log-level":                    "server.log_level",
	"GET /api/manage/diagnostics":                    "server.diagnostics",
}

// consoleActions names the acts of the audit log that a person does in the console with the routes of channel tokens. What programs
// do with tokens is not an act of management. Typing, uploads and what simulated phones do is not logged: nobody gets it.
var consoleActions = map[string]string{
	"POST /api/send-message/text":     parley.AuditSend,
	"POST /api/send-message/image":    parley.AuditSend,
	"POST /api/send-message/video":    parley.AuditSend,
	"POST /api/send-message/file":     parley.AuditSend,
	"POST /api/send-message/voice":    parley.AuditSend,
	"POST /api/send-message/location": parley.AuditSend,
	"POST /api/send-message/poll":     parley.AuditSend,
	"POST /api/send-message/contact":  parley.AuditSend,
	"POST /api/send-message/sticker":  parley.AuditSend,
	"POST /api/send-message/pool":     parley.AuditSend,
	"PUT /api/send-message/reaction":  "message.react",
	"PUT /api/send-message/edit":      "message.edit",
	"POST /api/send-message/seen":     "message.mark_seen",
	"DELETE /api/send-message/delete": "message.delete",
	"PUT /api/send-message/star":      "message.star",
	"POST /api/chat/archive":          "chat.archive",
	"POST /api/chat/un-archive":       "chat.unarchive",
	"POST /api/groups/create":         "group.create",
	"POST /api/groups/add":            "group.add",
	"POST /api/groups/remove":         "group.remove",
	"POST /api/groups/leave":          "group.leave",
	"POST /api/otp/code/request":      "otp.send_code",
	"POST /api/otp/code/global":       "otp.send_code",
	"POST /api/otp/link/request":      "otp.create_link",
	"POST /api/otp/link/global":       "otp.create_link",
	"DELETE /api/sandbox":             "sandbox.reset",
	"POST /api/sandbox/clock":         "sandbox.clock",
}

// audited makes work whose success is in the audit log: in its transaction if it calls auditTx there, else right after it.
func (s *server) audited(action string, w work) work {
	do := w.do
	w.do = func(ctx context.Context, r *request) (response, error) {
		r.action, r.from = action, s.addressOf(r.http).String()
		a, err := do(ctx, r)
		if err == nil && !r.inAudit {
			s.auditAfter(ctx, r)
		}
		return a, err
	}
	return w
}

// auditedInConsole is audited for requests of a console session only.
func (s *server) auditedInConsole(action string, w work) work {
	logged, plain := s.audited(action, w), w.do
	w.do = func(ctx context.Context, r *request) (response, error) {
		if r.token.Kind != console {
			return plain(ctx, r)
		}
		return logged.do(ctx, r)
	}
	return w
}

type auditedMessage struct {
	Channel parley.ChannelCode `json:"channel"`
	Type    parley.Kind        `json:"type"`
}

// auditMessages appends messages to the audit log, in the transaction that accepts them. An operation is logged with the message
// that it is about. The log has no text and no number.
func (r *request) auditMessages(ctx context.Context, tx *store.Tx, ms []parley.Message) error {
	for i := range ms {
		object := string(cmp.Or(targetOf(ms[i].Content).ID, ms[i].ID))
		after := auditedMessage{ms[i].Channel, ms[i].Content.Kind()}
		if err := r.auditTx(ctx, tx, change{object: object, after: after}); err != nil {
			return err
		}
	}
	return nil
}

// targetOf returns the message that an operation is about; without an id: none.
func targetOf(c parley.Content) parley.MessageRef {
	switch c := c.(type) {
	case parley.Reaction:
		return c.Target
	case parley.Seen:
		return c.Target
	case parley.Edit:
		return c.Target
	case parley.Delete:
		return c.Target
	case parley.Star:
		return c.Target
	}
	return parley.MessageRef{}
}

// change is what an act changed: an object before and after it, as it may be shown. Nil: it did not exist, or is not known.
type change struct {
	object        string
	before, after any
}

// auditTx appends the request's act to the audit log, in the transaction that does it.
func (r *request) auditTx(ctx context.Context, tx *store.Tx, c change) error {
	r.inAudit = true
	e := parley.AuditEntry{At: time.Now(), Actor: r.actor(), Action: r.action, Object: c.object, Address: r.from, Request: r.id}
	var err error
	if e.Before, e.After, err = changedFields(c.before, c.after); err != nil {
		return err
	}
	return tx.AddAudit(ctx, e)
}

// auditAfter logs an act that has no transaction of its own. The act is done, so a failure is only reported.
func (s *server) auditAfter(ctx context.Context, r *request) {
	object := cmp.Or(r.http.PathValue("code")+r.http.PathValue("id"), string(r.channel.Code))
	err := s.tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return r.auditTx(ctx, tx, change{object: object}) })
	if err != nil {
		s.Log.Error("an act is missing in the audit log", "action", r.action, "object", object, "error", err)
	}
}

const (
	refusedEvery = time.Minute // one more refused act of a caller is logged
	refusedBurst = 10          // of a caller at once
)

type auditedRefusal struct {
	Route string      `json:"route"`
	Needs parley.Role `json:"needs"`
}

// auditRefused logs that a role did not suffice, at most refusedBurst times: nobody can flood the log.
func (rt *route) auditRefused(ctx context.Context, r *request) {
	if rt.refusals.Spend(r.token.ID, time.Now()).Refused {
		return
	}
	r.action, r.from = parley.AuditRefused, rt.addressOf(r.http).String()
	c := change{object: r.http.PathValue("code") + r.http.PathValue("id"), after: auditedRefusal{rt.name(), rt.leastRole()}}
	if err := rt.tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return r.auditTx(ctx, tx, c) }); err != nil {
		rt.Log.Error("a refused act is missing in the audit log", "route", rt.name(), "error", err)
	}
}

func (r *request) actor() parley.Actor {
	a := parley.Actor{Kind: parley.ActorToken, ID: string(r.token.ID), Name: r.token.Name, Role: r.token.Role}
	switch {
	case r.token.Kind == console:
		a.Kind = parley.ActorSession
	case token.IsLocal(r.token):
		a.Kind = parley.ActorLocal
	}
	return a
}

// tokenID is the id of the request's token; empty: a console session has none.
func (r *request) tokenID() parley.TokenID {
	if r.token.Kind == console {
		return ""
	}
	return r.token.ID
}

// changedFields returns the fields of two objects that differ, as JSON.
func changedFields(before, after any) (old, new json.RawMessage, err error) {
	was, err := fieldsOf(before)
	if err != nil {
		return nil, nil, err
	}
	is, err := fieldsOf(after)
	if err != nil {
		return nil, nil, err
	}
	for name, value := range was {
		if other, both := is[name]; both && bytes.Equal(value, other) {
			delete(was, name)
			delete(is, name)
		}
	}
	return encodeFields(was), encodeFields(is), nil
}

func fieldsOf(object any) (fields map[string]json.RawMessage, err error) {
	if object == nil {
		return nil, nil
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

func encodeFields(fields map[string]json.RawMessage) json.RawMessage {
	if len(fields) == 0 {
		return nil
	}
	text, _ := json.Marshal(fields) // they were JSON before
	return text
}

type auditedChannel struct {
	Name     string                 `json:"name"`
	Network  parley.NetworkName     `json:"network"`
	Enabled  bool                   `json:"enabled"`
	Labels   []string               `json:"labels"`
	Settings parley.ChannelSettings `json:"settings"`
}

func auditChannel(c parley.Channel) auditedChannel {
	return auditedChannel{c.Name, c.Network, c.Enabled, append([]string{}, c.Labels...), c.Settings}
}

type auditedToken struct {
	Name      string           `json:"name"`
	Kind      parley.TokenKind `json:"kind"`
	Channel   *string          `json:"channel,omitempty"`
	Role      *string          `json:"role,omitempty"`
	ExpiresAt *string          `json:"expires_at,omitempty"`
	Revoked   bool             `json:"revoked"`
}

func auditToken(t parley.Token) auditedToken {
	return auditedToken{t.Name, t.Kind, textOrNil(t.Channel), textOrNil(t.Role), stampOrNil(t.ExpiresAt), !t.RevokedAt.IsZero()}
}

type auditedWebhook struct {
	URL     string             `json:"url"`
	Channel *string            `json:"channel,omitempty"`
	Events  []parley.EventType `json:"events"`
	Links   string             `json:"media_links"`
	Enabled bool               `json:"enabled"`
}

func auditWebhook(w parley.Webhook) auditedWebhook {
	return auditedWebhook{withoutSecrets(w.URL), textOrNil(w.Channel), w.Types, mediaLinks[w.SignedMedia], w.IsEnabled()}
}

// shownAddress is as much of an address as the caller may see: below operators the rest may be a secret.
func (r *request) shownAddress(address string) string {
	if address == "" || r.token.Role.Includes(parley.Operator) {
		return address
	}
	return parley.ShortAddress(address)
}

// withoutSecrets hides the parts of an address that often are secrets: user, password and the values of the query.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if u.User != nil {
		u.User = url.User("…")
	}
	query := u.Query()
	for name := range query {
		query.Set(name, "…")
	}
	u.RawQuery, u.Fragment = query.Encode(), ""
	shown, err := url.PathUnescape(u.String())
	if err != nil {
		return u.String()
	}
	return shown
}

type auditRow struct {
	ID        int64            `json:"id"`
	At        string           `json:"at"`
	ActorKind parley.ActorKind `json:"actor_kind"`
	Actor     string           `json:"actor"`
	ActorName string           `json:"actor_name"`
	Role      parley.Role      `json:"role"`
	Action    string           `json:"action"`
	Object    *string          `json:"object"`
	Address   *string          `json:"address"`
	RequestID string           `json:"request_id"`
	Before    json.RawMessage  `json:"before"` // null: nothing
	After     json.RawMessage  `json:"after"`
}

// auditRow is an entry as the caller may see it: only the audit log of operators and owners has the paths of addresses.
func (r *request) auditRow(e parley.AuditEntry) auditRow {
	if !r.token.Role.Includes(parley.Operator) {
		e.Before, e.After = withShortURL(e.Before), withShortURL(e.After)
	}
	return auditOf(e)
}

func withShortURL(changed json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var address string
	if json.Unmarshal(changed, &fields) != nil || json.Unmarshal(fields["url"], &address) != nil {
		return changed // it has no address
	}
	fields["url"], _ = json.Marshal(parley.ShortAddress(address)) // a text
	return encodeFields(fields)
}

func auditOf(e parley.AuditEntry) auditRow {
	return auditRow{e.Seq, parley.Stamp(e.At), e.Actor.Kind, e.Actor.ID, e.Actor.Name, e.Actor.Role, e.Action, textOrNil(e.Object),
		textOrNil(e.Address), e.Request, e.Before, e.After}
}

func (s *server) listAudit(ctx context.Context, r *request) (any, error) {
	q := parley.AuditQuery{
		Action: r.OptionalText("action", 1, 60), Actor: r.OptionalText("actor", 1, 100), Object: r.OptionalText("object", 1, 100),
		Since: r.Time("since"), Until: r.Time("until"),
	}
	page := r.Page()
	if err := r.Err(); err != nil {
		return nil, err
	}
	entries, total, err := s.Store.Audit(ctx, q, page)
	return okPage(mapped(entries, r.auditRow), page, total), err
}
