package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"parley"
	"strings"
	"time"

	"parley/internal/store/sqldb"
)

// plainTables is the migration that turns packed rows into plain ones.
const plainTables = 16

// upgrade does the parts of migrations that SQL cannot do.
func upgrade(c *sqldb.Conn, version int) error {
	if version != plainTables {
		return nil
	}
	if err := unpackEvents(c); err != nil {
		return fmt.Errorf("unpack events: %w", err)
	}
	if err := unpackCodes(c); err != nil {
		return fmt.Errorf("unpack one-time codes: %w", err)
	}
	if err := countPastEvents(c); err != nil {
		return fmt.Errorf("count events: %w", err)
	}
	return nil
}

// unpackEvents writes a row for each event of the packed log, with the same seq. Events of deleted channels are left out.
func unpackEvents(c *sqldb.Conn) error {
	rows, err := c.Query(`SELECT old_event.seq, count, channel.id, at, entries, sealed
		FROM old_event JOIN channel ON channel.code = old_event.channel`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq, count, channel, since int64
		var packed, encrypted []byte
		if err := rows.Scan(&seq, &count, &channel, &since, &packed, &encrypted); err != nil {
			return err
		}
		for n := seq - count + 1; n <= seq; n++ {
			var e packedEvent
			if e, packed, err = nextPacked(packed, since); err != nil {
				return fmt.Errorf("event %d: %w", n, err)
			}
			if _, err := c.Exec(`INSERT INTO event (seq, channel, type, at, received_at, message, status, contact, data, encrypted)
				VALUES ($1, $2, $3, $4, min($4, unixepoch() * 1000), nullif($5, 0), $6, $7, $8, $9)`,
				n, channel, int64(e.kind)+1, e.at, e.message, int64(e.status), string(e.chat), nullableText(e.data), nullable(encrypted)); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	_, err = c.Exec(`DROP TABLE old_event`)
	return err
}

// packedEvent is an event of the packed log. Its kind is the index of its type, whose number is one more.
type packedEvent struct {
	kind, status byte
	at, message  int64
	chat, data   []byte
}

var errPacked = errors.New("the packed row is damaged")

// nextPacked reads the first event of a packed row and returns the rest.
func nextPacked(b []byte, since int64) (e packedEvent, rest []byte, err error) {
	if len(b) < 2 || int(b[0]) >= len(eventNumbers) {
		return e, nil, errPacked
	}
	e.kind, e.status, b = b[0], b[1], b[2:]
	if e.at, b, err = nextNumber(b); err != nil {
		return e, nil, err
	}
	e.at += since
	if e.message, b, err = nextNumber(b); err != nil {
		return e, nil, err
	}
	if e.chat, b, err = nextBytes(b); err != nil {
		return e, nil, err
	}
	e.data, b, err = nextBytes(b)
	return e, b, err
}

func nextNumber(b []byte) (int64, []byte, error) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, errPacked
	}
	return v, b[n:], nil
}

func nextBytes(b []byte) ([]byte, []byte, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, errPacked
	}
	return b[n : n+int(size)], b[n+int(size):], nil
}

// unpackCodes copies one-time codes, whose times were packed.
func unpackCodes(c *sqldb.Conn) error {
	rows, err := c.Query(`SELECT seq, wrong, requests FROM old_otp_code`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var wrong, requests []byte
		if err := rows.Scan(&seq, &wrong, &requests); err != nil {
			return err
		}
		wrongTimes, err1 := unpackTimes(wrong)
		requestTimes, err2 := unpackTimes(requests)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if _, err := c.Exec(`INSERT INTO otp_code
			(seq, contact, channel, id, hash, encrypted, status, tries, created_at, expires_at, ended_at, wrong, requests)
			SELECT seq, contact, channel.id, o.id, hash, sealed, o.status, tries, o.created_at, expires_at, ended_at, $2, $3
			FROM old_otp_code o JOIN channel ON channel.code = o.channel WHERE seq = $1`, seq, wrongTimes, requestTimes); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	_, err = c.Exec(`DROP TABLE old_otp_code`)
	return err
}

// unpackTimes converts packed times to JSON. Each is stored as the milliseconds since the previous one.
func unpackTimes(b []byte) (string, error) {
	times := []int64{}
	var at int64
	for len(b) > 0 {
		since, rest, err := nextNumber(b)
		if err != nil {
			return "", err
		}
		at, b = at+since, rest
		times = append(times, at)
	}
	encoded, err := json.Marshal(times)
	return string(encoded), err
}

// countPastEvents fills the counters from the events of the last day.
func countPastEvents(c *sqldb.Conn) error {
	number := func(t parley.EventType) int64 {
		n, err := eventNumber(t)
		if err != nil {
			panic(err)
		}
		return n
	}
	status := number(parley.MessageStatus)
	if _, err := c.Exec(`UPDATE channel SET
		last_received_at = coalesce((SELECT max(at) FROM event WHERE event.channel = channel.id AND type = $1), 0),
		last_confirmed_at = coalesce((SELECT max(at) FROM event WHERE event.channel = channel.id AND type = $2 AND status BETWEEN 1 AND 3), 0)`,
		number(parley.MessageReceived), status); err != nil {
		return err
	}
	since := time.Now().Add(-24 * time.Hour).UnixMilli()
	for _, past := range []struct {
		what      parley.Counter
		condition string
	}{
		{parley.CountReceived, fmt.Sprintf(`type = %d`, number(parley.MessageReceived))},
		{parley.CountSent, fmt.Sprintf(`type = %d AND status = 1`, status)},
		{parley.CountDelivered, fmt.Sprintf(`type = %d AND status = 2`, status)},
		{parley.CountRead, fmt.Sprintf(`type = %d AND status = 3 AND message IN (SELECT seq FROM message WHERE from_me = 1)`, status)},
		{parley.CountFailed, fmt.Sprintf(`type = %d AND status = 5`, status)},
		{parley.CountApproved, fmt.Sprintf(`type = %d`, number(parley.OTPApproved))},
	} {
		for _, span := range []struct {
			table, column string
			ms            int64
		}{{"counter_minute", "minute", 60_000}, {"counter_hour", "hour", 3_600_000}} {
			for _, channel := range []string{"channel", "0"} {
				query := `INSERT INTO TABLE (channel, COLUMN, what, webhook, n) SELECT CHANNEL, received_at / $1, $2, '', count(*) FROM event
					WHERE received_at >= $3 AND ` + past.condition + ` GROUP BY 1, 2`
				query = strings.NewReplacer("TABLE", span.table, "COLUMN", span.column, "CHANNEL", channel).Replace(query)
				if _, err := c.Exec(query, span.ms, string(past.what), since); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
