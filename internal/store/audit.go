package store

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"parley"
)

// AuditRetention is how long entries of the audit log are stored.
const AuditRetention = 365 * 24 * time.Hour

// AuditSend is the action of a message that was sent from the console. Its object is the bare id of the message.
const AuditSend = "message.send"

// AuditRefused is the action of a request that was refused because the caller's role does not suffice.
const AuditRefused = "access.refused"

// ActorKind says who did something.
type ActorKind string

const (
	ActorToken   ActorKind = "token"   // an admin token
	ActorSession ActorKind = "session" // a console session
	ActorLocal   ActorKind = "local"   // the command line on the server
)

// Actor is who did something.
type Actor struct {
	Kind ActorKind
	ID   string // of the token or of the session
	Name string
	Role parley.Role
}

// AuditEntry is one act of management.
type AuditEntry struct {
	Seq     int64
	At      time.Time
	Actor   Actor
	Action  string          // what was done, such as channel.create
	Object  string          // to what: the code or id; may be empty
	Address string          // from where; may be empty
	Request string          // the id of the request
	Before  json.RawMessage // the changed fields as they were, without secrets; nil: nothing
	After   json.RawMessage // and as they are now
}

// AuditQuery selects entries. Empty fields select all.
type AuditQuery struct {
	Action       string // a whole action, or with a final dot all that begin so: "channel."
	Actor        string // id or name
	Object       string
	Since, Until time.Time
}

const auditColumns = `at, actor_kind, actor, actor_name, role, action, object, address, request, changed_from, changed_to`

// AddAudit appends an entry to the audit log. Entries are never changed.
func (t *Tx) AddAudit(_ context.Context, e AuditEntry) error {
	return t.exec(`INSERT INTO audit (`+auditColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		millis(e.At), string(e.Actor.Kind), e.Actor.ID, e.Actor.Name, string(e.Actor.Role), e.Action, e.Object, e.Address, e.Request,
		nullableText(e.Before), nullableText(e.After))
}

// Audit lists entries of the audit log, newest first, and counts all that the query selects.
func (r Reader) Audit(ctx context.Context, q AuditQuery, page parley.Page) (entries []AuditEntry, total int64, err error) {
	where, args := auditCondition(q)
	in := r.with(ctx)
	if err := in.row(`SELECT count(*) FROM audit WHERE `+where, args, &total); err != nil {
		return nil, 0, err
	}
	n := len(args)
	entries, err = list(in, `SELECT seq, `+auditColumns+` FROM audit WHERE `+where+` AND seq < `+param(n+1)+`
		ORDER BY seq DESC LIMIT `+param(n+2), append(args, before(page), int64(page.Limit)), scanAudit)
	return entries, total, err
}

func auditCondition(q AuditQuery) (where string, args []any) {
	conditions := []string{"1 = 1"}
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", param(len(args)), 1)
		}
		conditions = append(conditions, condition)
	}
	if prefix, isGroup := strings.CutSuffix(q.Action, "."); isGroup {
		add(`action > ? AND action < ?`, q.Action, prefix+"/") // the character after the dot
	} else if q.Action != "" {
		add(`action = ?`, q.Action)
	}
	if q.Actor != "" {
		add(`(actor = ? OR actor_name = ?)`, q.Actor, q.Actor)
	}
	if q.Object != "" {
		add(`object = ?`, q.Object)
	}
	if !q.Since.IsZero() {
		add(`at >= ?`, millis(q.Since))
	}
	if !q.Until.IsZero() {
		add(`at < ?`, millis(q.Until))
	}
	return strings.Join(conditions, " AND "), args
}

func scanAudit(row scanner) (AuditEntry, error) {
	var e AuditEntry
	var at int64
	var before, after []byte
	err := row.Scan(&e.Seq, &at, &e.Actor.Kind, &e.Actor.ID, &e.Actor.Name, &e.Actor.Role, &e.Action, &e.Object, &e.Address, &e.Request,
		&before, &after)
	e.At, e.Before, e.After = moment(at), json.RawMessage(before), json.RawMessage(after)
	return e, err
}

// PurgeAudit deletes entries before a time, at most limit of them, and returns how many.
func (t *Tx) PurgeAudit(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := t.sql.Exec(`DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at < $1 ORDER BY at LIMIT $2)`,
		millis(before), int64(limit))
	return int(n), err
}
