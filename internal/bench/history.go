package main

import (
	"context"
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

// measureHistory compares pages of a long chat with pages of a short one.
func measureHistory(ctx context.Context, o options, t *table) error {
	const short, long = "6281200000001", "6281200000002"
	return inTempDir(func(data string) error {
		if err := withParley(ctx, o, data, func(*process) error { return nil }); err != nil { // creates the channel
			return err
		}
		if err := seed(ctx, data, map[string]int{short: 1000, long: o.messages}); err != nil {
			return err
		}
		return withParley(ctx, o, data, func(p *process) error {
			t.note(fmt.Sprintf("start to ready, %d messages", o.messages), fmt.Sprintf("%.0f ms", ms(p.took)))
			return comparePages(o, t, p, short, long)
		})
	})
}

func comparePages(o options, t *table, p *process, short, long string) error {
	for _, page := range []struct {
		name              string
		offShort, offLong int
	}{{"first", 0, 0}, {"last", 950, o.messages - 50}} {
		var ratios []float64
		for range o.rounds {
			var took [2]time.Duration
			for i, path := range []string{
				fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&limit=50&offset=%d", short, page.offShort),
				fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&limit=50&offset=%d", long, page.offLong),
			} {
				l, err := drive(p.addr, [][]byte{get(path, p.token)}, `"per_page":50`, o.slice/4)
				if err != nil {
					return err
				}
				took[i] = quantile(l.latencies, 0.5)
			}
			ratios = append(ratios, float64(took[1])/float64(took[0]))
		}
		t.add(fmt.Sprintf("chat/detail, %s page: %d messages against 1,000", page.name, o.messages),
			fmt.Sprintf("%.2f times as long", median(ratios)), "<= 3", median(ratios) <= 3)
	}
	return nil
}

// seed adds messages to chats of the channel "demo", directly in the database.
func seed(ctx context.Context, data string, chats map[string]int) error {
	db, err := store.Open(ctx, data+"/parley.db")
	if err != nil {
		return err
	}
	defer db.Close()
	const batch = 10_000
	for number, count := range chats {
		for done := 0; done < count; done += batch {
			err := db.Tx(ctx, func(tx *store.Tx) error {
				for i := done; i < min(count, done+batch); i++ {
					m := parley.Message{Channel: "demo", Chat: parley.ContactOf(number), FromMe: i%2 == 0,
						Content: parley.Text{Body: fmt.Sprintf("Message number %d of a long conversation.", i)},
						Status:  parley.Delivered, CreatedAt: time.Now()}
					if !m.FromMe {
						m.ID = parley.NewMessageID() // inbound ids come from the network
					}
					if err := tx.AddMessage(ctx, &m); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	manySends    = 400_000
	manyContacts = 100_000
	fallsWithin  = 90 * time.Second
	fallsUnder   = 150 // MB
)

// measureMemory measures how much memory is left after a load with many contacts.
func measureMemory(ctx context.Context, o options, t *table) error {
	return withParley(ctx, o, "", func(p *process) error {
		const batch = 20_000 // requests that are built ahead
		highest := int64(0)
		for sent := 0; sent < manySends; sent += batch {
			requests := make([][]byte, batch)
			for i := range requests {
				requests[i] = sendText(fmt.Sprintf("62813%06d", (sent+i)%manyContacts), p.token)
			}
			if _, err := driveOnce(p.addr, o.connections, requests, `"success":true`, nil); err != nil {
				return err
			}
			rss, err := p.rss()
			if err != nil {
				return err
			}
			highest = max(highest, rss)
		}
		for end := time.Now(); ; time.Sleep(time.Second) {
			rss, err := p.rss()
			if err != nil {
				return err
			}
			if took := time.Since(end); rss < fallsUnder*mb || took > fallsWithin {
				t.add(fmt.Sprintf("memory after %d sends to %d contacts", manySends, manyContacts),
					fmt.Sprintf("%.0f MB after %.0f s (highest %.0f MB)", float64(rss)/mb, took.Seconds(), float64(highest)/mb),
					fmt.Sprintf("< %d MB within %.0f s", fallsUnder, fallsWithin.Seconds()), rss < fallsUnder*mb)
				return nil
			}
		}
	})
}
