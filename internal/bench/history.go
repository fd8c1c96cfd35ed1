package main

import (
	"context"
	"errors"
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
		if err := seed(ctx, data, "demo", map[string]int{short: 1000, long: o.messages}); err != nil {
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
				l, err := drive(p.addr, 1, [][]byte{get(path, p.token)}, `"per_page":50`, o.slice/4)
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

// seed adds messages to chats of a channel, directly in the database.
func seed(ctx context.Context, data string, channel parley.ChannelCode, chats map[string]int) error {
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
					m := parley.Message{Channel: channel, Chat: parley.ContactOf(number), FromMe: i%2 == 0,
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

// measureDeletions measures how long sends of one channel wait while another is reset or deleted, to the end of the deletion.
func measureDeletions(ctx context.Context, o options, t *table) error {
	const small, large = "small", "large"
	sizes := map[parley.ChannelCode]int{small: 2000, large: o.messages / 2}
	return inTempDir(func(data string) error {
		tokens := map[string]string{}
		err := withParley(ctx, o, data, func(p *process) error {
			for _, code := range []string{small, large} {
				var token channelState
				err := errors.Join(p.call("POST", "/api/manage/channels", map[string]string{"code": code, "network": "sandbox"}, nil),
					p.call("POST", "/api/manage/tokens", map[string]string{"kind": "channel", "channel": code}, &token))
				if err != nil {
					return err
				}
				tokens[code] = token.Data.Token
			}
			return nil
		})
		if err != nil {
			return err
		}
		for channel, messages := range sizes {
			if err := seed(ctx, data, channel, map[string]int{"6281200000001": messages / 2, "6281200000002": messages / 2}); err != nil {
				return err
			}
		}
		return withParley(ctx, o, data, func(p *process) error {
			user := *p
			user.admin = tokens[small]
			if err := sendDuring(p, t, "no deletion, to compare", func() error { return nil }); err != nil {
				return err
			}
			reset := func() error { return user.call("DELETE", "/api/sandbox", nil, nil) }
			if err := sendDuring(p, t, "a reset of a small channel", reset); err != nil {
				return err
			}
			for _, channel := range []parley.ChannelCode{small, large} {
				what := fmt.Sprintf("the deletion of a channel with %d messages", sizes[channel])
				if err := sendDuring(p, t, what, func() error { return deleteChannel(p, channel) }); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// deleteChannel deletes a channel and waits until nothing of it is left.
func deleteChannel(p *process, code parley.ChannelCode) error {
	if err := p.call("DELETE", "/api/manage/channels/"+string(code), nil, nil); err != nil {
		return err
	}
	for {
		var list struct {
			Data []struct {
				Code  parley.ChannelCode
				State string
			}
		}
		if err := p.call("GET", "/api/manage/deletions", nil, &list); err != nil {
			return err
		}
		for _, d := range list.Data {
			if d.Code == code && d.State == "finished" {
				return nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// sendDuring sends at a constant rate, and meanwhile calls do, until it returns. No send may wait long.
func sendDuring(p *process, t *table, what string, do func() error) error {
	const perSecond, seconds, longest = 200, 5, 100 * time.Millisecond
	requests := make([][]byte, perSecond*seconds)
	for i := range requests {
		requests[i] = sendText(phone(i%100), p.token)
	}
	done, took := make(chan error, 1), time.Duration(0)
	go func() {
		time.Sleep(time.Second)
		began := time.Now()
		err := do()
		took = time.Since(began)
		done <- err
	}()
	slowest := time.Duration(0)
	for over := false; !over; {
		l, err := pace(p.addr, 16, perSecond, requests, `"success":true`)
		if err != nil {
			return errors.Join(err, <-done)
		}
		slowest = max(slowest, quantile(l.latencies, 1))
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			over = true
		default:
		}
	}
	t.add("longest send during "+what, fmt.Sprintf("%.0f ms (it took %.1f s)", ms(slowest), took.Seconds()), "<= 100 ms", slowest <= longest)
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
