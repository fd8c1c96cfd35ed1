package store_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// randomMessages makes messages to contacts of two channels, one of which writes its number in two ways.
func randomMessages(n int) []parley.Message {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(prefix string) string {
		if random.IntN(3) == 0 {
			return ""
		}
		return fmt.Sprint(prefix, "é'\"\\\n", random.IntN(1000))
	}
	moment := func() time.Time { return start.Add(time.Duration(random.IntN(300)) * time.Second) }
	optional := func() time.Time {
		if random.IntN(2) == 0 {
			return time.Time{}
		}
		return moment()
	}
	messages := make([]parley.Message, n)
	for i := range messages {
		target := parley.MessageRef{Chat: ann, ID: "3EB0", FromMe: true}
		contents := []parley.Content{
			parley.Text{Body: text("text ")},
			parley.Text{Body: text("text "), Preview: &parley.Preview{URL: "https://example.com", Title: text("title ")}},
			parley.Secret{Shown: text("code "), OTP: "otc_1", Encrypted: []byte{0, 1, byte(i)}},
			parley.Image{Media: parley.Media{Key: text("key "), MIME: "image/png"}, Caption: text("caption ")},
			parley.Location{Title: text("place "), Latitude: "-6.2", Longitude: "106.8"},
			parley.Poll{Title: text("question "), Options: []string{"a", "b"}}, parley.Reaction{Target: target, Emoji: "👍"},
			parley.Delete{Target: target}, parley.Archive{},
		}
		messages[i] = parley.Message{
			Channel: []parley.ChannelCode{main, other}[random.IntN(2)],
			Chat:    parley.ContactID(fmt.Sprintf("6281100000%03d@c.us", random.IntN(200))), ID: parley.MessageID(fmt.Sprint("M", i)),
			FromMe: random.IntN(4) > 0, Content: contents[random.IntN(len(contents))], Status: parley.Status(random.IntN(3)),
			Author: parley.ContactID(text("author ")), ReplyTo: parley.MessageID(text("reply ")), Pool: parley.PoolID(text("pool ")),
			Request: text("request "), IdempotencyKey: text("key "), Token: parley.TokenID(text("token ")),
			Priority: parley.Priority(random.IntN(parley.Priorities)), CreatedAt: moment(), ReceivedAt: optional(), UpdatedAt: optional(),
			ExpiresAt: optional(),
		}
		if i > 0 && random.IntN(2) == 0 { // so that some chats get all their messages at once
			messages[i].Channel, messages[i].Chat = messages[i-1].Channel, messages[i-1].Chat
		}
	}
	return messages
}

// addRandom stores random messages, several in each transaction, checks that they are read as they were stored, and returns the rows
// of the database.
func addRandom(t *testing.T, path, driver, address string, add func(*store.Tx, *parley.Message) error) []string {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	e := &env{T: t, store: db}
	e.channel(main, other)
	e.tx(func(tx *store.Tx) error {
		return tx.AddAlias(t.Context(), main, "6281100000003@c.us", "6281100000004@c.us")
	})
	all := randomMessages(1000)
	for some := range slices.Chunk(all, 7) {
		e.tx(func(tx *store.Tx) error {
			for i := range some {
				if err := add(tx, &some[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, m := range all {
		if m.UpdatedAt.IsZero() {
			m.UpdatedAt = m.CreatedAt
		}
		got, err := db.MessageAt(t.Context(), m.Seq)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, m)
		}
	}
	tables, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	return slices.Concat(
		tableRows(t, tables, `SELECT message.*, code, contact FROM message JOIN chat ON chat.id = chat
			JOIN channel ON channel.id = message.channel
			ORDER BY seq`, "chat"), // the database chooses it
		tableRows(t, tables, `SELECT channel, contact, last_at / 60000 AS minute, archived, known FROM chat ORDER BY channel, contact`),
		tableRows(t, tables, `SELECT code, chats FROM channel ORDER BY code`))
}

// tableRows lists the rows of a query as texts, without some columns.
func tableRows(t *testing.T, db *sql.DB, query string, without ...string) (all []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for i, column := range columns {
			if !slices.Contains(without, column) {
				row = append(row, fmt.Sprintf("%s %q %t", column, values[i].String, values[i].Valid))
			}
		}
		slices.Sort(row) // the order of the columns does not matter
		all = append(all, strings.Join(row, ", "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPostgresMessageRows adds the same messages in both ways to both databases, which then have the same rows.
func TestPostgresMessageRows(t *testing.T) {
	server := postgrestest.Start(t)
	var want []string
	for way, add := range map[string]func(*store.Tx, *parley.Message) error{
		"AddMessage":     func(tx *store.Tx, m *parley.Message) error { return tx.AddMessage(t.Context(), m) },
		"EnqueueMessage": func(tx *store.Tx, m *parley.Message) error { return tx.EnqueueMessage(t.Context(), m) },
	} {
		file, schema := filepath.Join(t.TempDir(), "parley.db"), server.Schema(t)
		for where, got := range map[string][]string{
			"SQLite":     addRandom(t, file, "sqlite", "file:"+file, add),
			"PostgreSQL": addRandom(t, schema, "pgx", schema, add),
		} {
			if want == nil {
				want = got
			}
			if len(got) != len(want) || len(got) < 1000 {
				t.Fatalf("%s on %s: %d rows, want %d", way, where, len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s on %s:\n got %s\nwant %s", way, where, got[i], want[i])
				}
			}
		}
	}
}
