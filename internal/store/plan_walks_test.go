package store_test

// Reasons of walks that several statements have.
const (
	// limited is for a walk in the order of an index that ends with the LIMIT. The test makes sure that nothing is sorted.
	limited  = "it ends at the limit"
	anEnd    = "it reads one end of an index"
	aRange   = "the caller gives both ends of the range: at most as many rows as one call may read"
	oneRow   = "the table has one row"
	operator = "an operator's list or act; they are rare, and the table is small or indexed by what is asked for most"
	queue    = "a channel has a limited number of pending messages"
	counters = "counters are stored for a limited time"
	purging  = "what waits to be purged is little"
	future   = "it finds rows only after the clock was set back"
	waiting  = "deliveries that wait for an endpoint which does not respond, the first of each chat"
	merging  = "two spellings of one number become one chat, once"
)

// unlooked are files whose statements have no test of their plans, with the reason.
var unlooked = map[string]string{
	"upgrade.go":   "migrations change whole tables",
	"backup.go":    "a restore runs once, on a copy that no server uses",
	"copy.go":      "a copy reads everything, while no server runs",
	"reencrypt.go": "a rotation of the key reads everything once",
	"cluster.go":   "there are a few nodes, and 128 shards",
}

// onlyOn are pieces of statements that only one database runs.
var onlyOn = map[string][]string{
	"sqlite": {
		"SELECT seq FROM sqlite_sequence WHERE name = 'event'",
		"INSERT INTO counter_minute (channel, minute, what, webhook, n) VALUES ($1, $2, $3, $4, $5)",
		"INSERT INTO counter_hour (channel, hour, what, webhook, n) VALUES ($1, $2, $3, $4, $5)",
		") VALUES ($1, $2, $3, $4, nullif($5, 0), $6, $7, $8, nullif($9, x''))",
		", held) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,",
		"UPDATE delivery SET state = $1, attempts = $2, next_at = $3, tried_at = $4, ended_at = $5, " +
			"took = $6, code = $7, problem = $8, response = $9, earlier = $10 WHERE seq = $11 AND state < 1 AND attempts = $12",
	},
	"postgres": {
		`FOR UPDATE`, `ORDER BY id FOR UPDATE`,
		`SELECT 1 FROM otp_link WHERE id = $1 FOR UPDATE`,
		`SELECT greatest(removed_to, (SELECT max(seq) FROM event)) FROM log`,
	},
}

// walks are the steps of plans that may read many rows. The fragment is a part of the statement; without a table it is about all.
var walks = []struct {
	table, fragment, why, on string
}{
	{"revision", "", oneRow, ""},
	{"clock", "", oneRow, ""},
	{"log", "", oneRow, ""},
	{"sqlite_sequence", "", "it has a row for each table", "sqlite"},
	{"change", "", "it has the last changes only", "postgres"},
	{"deletion", "", purging, ""},
	{"retired_webhook", "", purging, ""},

	// Purges and other work in batches.
	{"", "LIMIT $2)", limited, ""},
	{"", "LIMIT $3)", limited, ""},
	{"event", "DELETE FROM event WHERE seq <= $1", aRange, ""},
	{"event", "ORDER BY seq DESC LIMIT 1", limited, ""},
	{"event", "SELECT seq FROM event ORDER BY seq LIMIT 1", limited, ""},
	{"message", "FROM message WHERE channel = $1 LIMIT $2", limited, ""},
	{"file", "FROM file WHERE channel = $1 LIMIT $2", limited, ""},
	{"message", "AND status <> 0 ORDER BY received_at LIMIT $3", limited, ""},
	{"upload", "ORDER BY at LIMIT $2", limited, ""},
	{"channel_state", "ORDER BY seq DESC LIMIT $2", "statuses of one channel", ""},
	{"channel_state", "(SELECT max(seq) FROM channel_state WHERE channel = $2)", anEnd, ""},
	{"channel_state", "SELECT seq FROM channel_state WHERE at < $1", "old statuses and the current ones; no writer waits for it", ""},
	{"message", "FROM message WHERE seq > $1 ORDER BY seq LIMIT $2", limited, ""},
	{"message", "position >= $2 ORDER BY position LIMIT 1", limited, ""},
	{"message", "min(position)", anEnd, ""},
	{"message", "NOT EXISTS (SELECT 1 FROM message WHERE message.chat = chat.id", "it ends at the first", ""},
	{"delivery", "(SELECT min(event) - 1 FROM delivery", waiting, ""},
	{"webhook", "(SELECT min(cursor) FROM webhook", operator, "postgres"},
	{"otp_stranger", "DELETE FROM otp_stranger WHERE channel = $1 AND at <= $2", "it deletes what it reads, with every code", ""},
	{"otp_wrong", "", "it has the minutes of one window", ""},
	{"stored_hour", "UPDATE stored_hour SET channel = $1", "what a channel stored is counted by the hour, for a day", ""},
	{"request_log", "", "a channel has about a thousand logged requests", ""},

	// Chats and histories.
	{"chat", "AND (opted_out_at, id) < ($2, $3)", limited, ""},
	{"chat", "AND last_at >= $2 AND contact LIKE '%@c.us'", "a check of a number that is new or has a limit: chats of a day", ""},
	{"message", "AND position > (SELECT coalesce(max(position), 0) FROM message WHERE chat = $1) - $4", aRange, ""},
	{"chat", "SELECT count(*) FROM chat WHERE channel = (SELECT id FROM channel WHERE code = $1) AND opted_out_at > 0", operator, ""},
	{"message", "max(position)", anEnd, ""},
	{"message", "ORDER BY position DESC LIMIT 1), 0)", anEnd, ""},
	{"message", "WHERE message.chat = $1 AND position BETWEEN $2 AND $3", aRange, ""},
	{"message", "priority = 0 AND status BETWEEN 1 AND 4", "it ends at the first; a contact who has none got codes only", ""},
	{"chat", "ORDER BY last_at DESC, id DESC LIMIT", limited, ""},
	{"chat", " FROM chat WHERE channel = $1 AND last_at >= $2 AND last_at < $3", "a page, and the chats of its first and last minutes", ""},
	{"chat", "ORDER BY last_at, id LIMIT 1 OFFSET", limited, ""},
	{"chat", "AND (SELECT id FROM channel WHERE channel.id = chat.channel AND ($", limited, ""},

	// Searches look at so many messages at a time, or at chats that have not more.
	{"message", "ORDER BY seq DESC LIMIT $2) AS next", "it ends at the limit; of pending messages there are few", ""},
	{"message", "message.seq >= $2 AND", aRange, ""},
	{"message", "message.seq >= $3 AND", aRange, ""},
	{"message", "WHERE message.chat IN (SELECT id FROM chat WHERE (", "these chats have at most maxSorted messages", ""},
	{"chat", "WHERE message.chat IN (SELECT id FROM chat WHERE (", "there are at most maxChats of these chats", ""},
	{"message", "SELECT count(*) FROM message", operator, ""},

	// The queue of a channel.
	{"message", "message.channel = (SELECT id FROM channel WHERE code = $1) AND status = 0", queue, ""},

	// Events.
	{"event", "ORDER BY event.seq LIMIT", limited, ""},
	{"event", "ORDER BY event.seq DESC LIMIT", limited, ""},

	// Deliveries.
	{"delivery", "AND chat = ended.chat ORDER BY event LIMIT 1", limited, ""},
	{"delivery", "AND delivery.chat = placed.chat LIMIT 1", limited, "postgres"},
	{"delivery", "SELECT 1 FROM delivery AS earlier", "it ends at the first", ""},
	{"delivery", "SELECT seq, endpoint FROM delivery WHERE channel = $1 ORDER BY seq LIMIT $2", limited, ""},
	{"delivery", "min(next_at), max(event)", "callbacks that wait, and came since the last look", ""},
	{"delivery", "EXISTS (SELECT 1 FROM delivery WHERE state = 0", "it ends at the first", ""},
	{"delivery", "AND channel = $3 AND chat = $4 AND next_at > $1", "the waiting deliveries of one chat", ""},
	{"delivery", "state = 0 AND held = 0 AND endpoint", waiting, ""},
	{"delivery", "SELECT count(*) FROM delivery", operator, ""},
	{"delivery", "ORDER BY delivery.seq DESC LIMIT", operator, ""},
	{"delivery", "ORDER BY delivery.seq LIMIT", operator, ""},

	// Files to fetch.
	{"media_fetch", "min(next_at)", anEnd, ""},
	{"media_fetch", "SELECT min(seq) FROM media_fetch WHERE (next_at <= $1", "files that wait for their fetch", ""},
	{"media_fetch", "UPDATE media_fetch SET chat = $2", merging, ""},
	{"upload", "AND used = 0", "a channel may have so many unused uploads", ""},

	// What a network calls things.
	{"remote_contact", "inbound_at > 0 ORDER BY name, contact LIMIT $2", limited, ""},
	{"remote_contact", "SELECT count(*) FROM remote_contact", "the total of a list that a caller asked for", ""},

	// One-time passwords.
	{"otp_code", "ORDER BY expires_at", limited, ""},
	{"", "UNION ALL SELECT channel, expires_at FROM otp_link", "codes and links that are due", ""},
	{"", "SELECT code FROM channel WHERE EXISTS", "once a minute it looks up each channel in indexes", ""},
	{"otp_link", "DESC LIMIT $2", limited, ""},
	{"otp_link", "ORDER BY expires_at LIMIT $3", limited, ""},
	{"message", "AND position > 0 AND (from_me = 0 OR status BETWEEN 1 AND 4)", "it ends at the first message that came in or was sent", ""},
	{"otp_stranger", "ORDER BY at DESC LIMIT $3", limited, ""},
	{"otp_stranger", "AND length(contact) = $4", "numbers that differ in their last digits only", ""},
	{"otp_stranger", "count(*), coalesce(sum(approved), 0)", "codes to strangers in one window; a limit keeps them few", ""},
	{"otp_code", "created_at > $2", future, ""},
	{"otp_link", "created_at > $2", future, ""},
	{"otp_fallback", "SELECT coalesce(min(due_at), 0)", anEnd, ""},
	{"otp_fallback", "due_at > $2", future, ""},
	{"otp_fallback", "ORDER BY due_at LIMIT $2", limited, ""},
	{"otp_link", "UPDATE otp_link SET ended_at = $2", future, ""},
	{"otp_reply", "UPDATE otp_reply SET at = $2", future, ""},
	{"otp_stranger", "UPDATE otp_stranger SET at = $2", future, ""},

	// Counters.
	{"counter_hour", "", counters, ""},
	{"counter_minute", "", counters, ""},

	// What operators do.
	{"alert", "", operator, ""},
	{"alert_rule", "ORDER BY created_at", operator, ""},
	{"audit", "FROM audit WHERE 1 = 1", operator, ""},
	{"channel", "SELECT DISTINCT network FROM channel", "asked while channels start, and while all are simulated", ""},
	{"channel", "FROM channel ORDER BY code", "it lists all channels", ""},
	{"", "WHERE state = 0 AND held = 0 GROUP BY endpoint", "once at the start: the first waiting delivery of each chat", ""},
	{"", "GROUP BY channel) AS pending", "messages that wait to be sent", ""},
	{"signing_key", "", operator, ""},
	{"ticket", "DELETE FROM ticket WHERE channel = $1", operator, ""},
	{"ticket", "ORDER BY created_at DESC, hash LIMIT $3", operator, ""},
	{"token", "DELETE FROM token WHERE channel = $1", operator, ""},
	{"token", "ORDER BY created_at, seq", operator, ""},
	{"webhook", "FROM webhook ORDER BY created_at, seq", operator, ""},
	{"webhook", "FROM webhook WHERE channel = $1", operator, ""},
	{"webhook", "disabled_at = 0 AND cursor < $1", operator, ""},

	// PostgreSQL may read a table once instead of looking up many rows in it.
	{"channel", "SELECT min(seq) FROM media_fetch", "the channels of many files that wait for their fetch", "postgres"},
	{"", "FROM otp_alarm CROSS JOIN channel", "an alarm is rare, and shown on the overview", ""},
	{"message", "max(seq)", anEnd, "postgres"},
	{"event", "max(seq)", anEnd, "postgres"},

	{"otp_link", "contact IN ($4) AND status = 0", "it may take either index of the open links of a channel", "postgres"},

	// Two spellings of one number.
	{"message", "UPDATE message SET chat = $2", merging, ""},
	{"message", "UPDATE message SET id = id || seq", merging, ""},
	{"message", "UPDATE message SET position", merging, ""},
}
