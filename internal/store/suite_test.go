package store_test

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// runSuite tests a store. open returns a new, empty one, which runSuite closes. Only some groups of tests are run if they
// are named.
func runSuite(t *testing.T, open func(t *testing.T) *store.DB, only ...string) {
	for _, group := range []struct {
		name  string
		tests map[string]func(*env)
	}{
		{"channels", channelTests},
		{"tokens", tokenTests},
		{"tickets", ticketTests},
		{"audit", auditTests},
		{"requests", requestTests},
		{"alerts", alertTests},
		{"messages", messageTests},
		{"queue", queueTests},
		{"history", historyTests},
		{"chats", chatTests},
		{"chat list", chatListTests},
		{"retention", retentionTests},
		{"answers", answerTests},
		{"clock", clockTests},
		{"codes", codeTests},
		{"fallbacks", fallbackTests},
		{"links", linkTests},
		{"strangers", strangerTests},
		{"opt-outs", optOutTests},
		{"webhooks", webhookTests},
		{"deliveries", deliveryTests},
		{"transactions", transactionTests},
		{"events", eventTests},
		{"search", searchTests},
		{"search by number", numberTests},
		{"traces", traceTests},
		{"moves", moveTests},
		{"files to fetch", mediaFetchTests},
		{"uploads", uploadTests},
		{"stored files", fileTests},
		{"counters", counterTests},
		{"remote", remoteTests},
		{"the rest", restTests},
	} {
		if len(only) > 0 && !slices.Contains(only, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			for name, test := range group.tests {
				t.Run(name, func(t *testing.T) {
					store := open(t)
					t.Cleanup(func() {
						if err := store.Close(); err != nil {
							t.Errorf("close: %v", err)
						}
					})
					e := &env{T: t, store: store}
					if group.name != "channels" {
						e.channel(main, other)
					}
					test(e)
				})
			}
		})
	}
}

// env is a store under test. Its methods fail the test.
type env struct {
	*testing.T
	store *store.DB
}

const (
	main  = parley.ChannelCode("main")
	other = parley.ChannelCode("other")
	ann   = parley.ContactID("6281100000001@c.us")
	bob   = parley.ContactID("6281100000002@c.us")
)

// start is when the tests take place, in the precision that stores keep.
var start = time.Date(2026, 11, 15, 8, 30, 0, 123_000_000, time.UTC)

// tx runs a transaction that must succeed. Inside, errors are returned and not reported: the function
// runs on the store's own goroutine.
func (e *env) tx(do func(tx *store.Tx) error) {
	e.Helper()
	e.must(e.store.Tx(e.Context(), do))
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// wants makes sure that a transaction fails with an error.
func (e *env) wants(want error, do func(tx *store.Tx) error) {
	e.Helper()
	if err := e.store.Tx(e.Context(), do); !errors.Is(err, want) {
		e.Errorf("got error %v, want %v", err, want)
	}
}

// same compares what there is with what there should be.
func (e *env) same(what string, got, want any) {
	e.Helper()
	if !reflect.DeepEqual(got, want) {
		e.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// channel adds channels that are not there.
func (e *env) channel(codes ...parley.ChannelCode) {
	e.Helper()
	e.tx(func(tx *store.Tx) error {
		for _, code := range codes {
			err := tx.AddChannel(e.Context(), parley.Channel{Code: code, Network: parley.Sandbox, CreatedAt: start})
			if err != nil && err != parley.ErrExists {
				return err
			}
		}
		return nil
	})
}

// purge removes what is left of deleted channels, and returns the files of their messages.
func (e *env) purge() (files []parley.Media) {
	e.Helper()
	for more := true; more; {
		e.tx(func(tx *store.Tx) (err error) {
			var some []parley.Media
			some, more, err = tx.PurgeChannels(e.Context())
			files = append(files, some...)
			return err
		})
	}
	return files
}

// outgoing makes a text that the main channel sends to Ann; without an id, it gets a random one.
func outgoing(id string) parley.Message {
	return parley.Message{
		Channel: main, Chat: ann, ID: parley.MessageID(cmp.Or(id, rand.Text())), FromMe: true, Content: parley.Text{Body: "text of " + id},
		Status: parley.Pending, CreatedAt: start, UpdatedAt: start, ExpiresAt: start.Add(time.Hour),
	}
}

// incoming makes a text that Ann sent to the main channel.
func incoming(id string) parley.Message {
	m := outgoing(id)
	m.FromMe, m.Status, m.ExpiresAt = false, parley.Received, time.Time{}
	return m
}

// add stores messages, in one transaction, and sets their Seq.
func (e *env) add(messages ...*parley.Message) {
	e.Helper()
	e.tx(func(tx *store.Tx) error {
		for _, m := range messages {
			if err := tx.AddMessage(e.Context(), m); err != nil {
				return fmt.Errorf("add %s: %w", m.ID, err)
			}
		}
		return nil
	})
}

// message reads a message that is there.
func (e *env) message(m parley.Message) parley.Message {
	e.Helper()
	got, err := e.store.Message(e.Context(), m.Channel, m.Ref())
	e.must(err)
	return got
}

// ids lists the ids of messages.
func ids(messages []parley.Message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, string(m.ID))
	}
	return all
}

// second returns the error of a call that returns something else too.
func second[T any](_ T, err error) error { return err }
