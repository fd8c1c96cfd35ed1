package parley

import (
	"encoding/json"
	"time"
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
	Role Role
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
