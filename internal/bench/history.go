package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/store"
)

// Channels of measureHistory beside demo, which has the long history: one with few messages, and one with many chats.
const (
	shortChannel, wideChannel = "short", "wide"
	wideChats                 = 50_000
)

// measureHistory compares what reads or quotes a long chat with the same in a short one, and the last page of many chats with the
// first.
func measureHistory(ctx context.Context, o options, t *table) error {
	const short, long = "6281200000001", "6281200000002"
	return inTempDir(func(data string) error {
		tokens, err := createChannels(ctx, o, data, shortChannel, wideChannel)
		if err != nil {
			return err
		}
		wide := map[string]int{}
		for i := range wideChats {
			wide[fmt.Sprint(6281300000000+i)] = 1
		}
		if err := errors.Join(seed(ctx, data, "demo", map[string]int{short: 1000, long: o.messages}),
			seed(ctx, data, shortChannel, map[string]int{long: 1000}),
			seedAt(ctx, data, wideChannel, wide, time.Now(), 20*time.Second)); err != nil {
			return err
		}
		ids, err := oldest(ctx, data, parley.NewContactID(long), shortChannel, "demo")
		if err != nil {
			return err
		}
		return withParley(ctx, o, data, func(p *process) error {
			t.note(fmt.Sprintf("start to ready, %d messages", o.messages), fmt.Sprintf("%.0f ms", ms(p.took)))
			if err := comparePages(o, t, p, short, long); err != nil {
				return err
			}
			if err := compareReplies(o, t, p, parley.NewContactID(long), ids, []string{tokens[shortChannel], p.token}); err != nil {
				return err
			}
			return compareChats(o, t, p, tokens[wideChannel])
		})
	})
}

func comparePages(o options, t *table, p *process, short, long string) error {
	for _, page := range []struct {
		name              string
		offShort, offLong int
	}{{"first", 0, 0}, {"last", 950, o.messages - 50}} {
		what := fmt.Sprintf("chat/detail, %s page: %d messages against 1,000", page.name, o.messages)
		err := compare(o, t, p, what, `"per_page":50`, func(i int) []byte {
			contact, offset := []string{short, long}[i], []int{page.offShort, page.offLong}[i]
			return get(fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&limit=50&offset=%d", contact, offset), p.token)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compareReplies compares replies and bare ids in the channel with the long history with those in one that has 1,000 messages. The
// ids are of the oldest messages.
func compareReplies(o options, t *table, p *process, contact parley.ContactID, ids []parley.MessageID, tokens []string) error {
	return errors.Join(
		compare(o, t, p, fmt.Sprintf("a reply: %d messages against 1,000", o.messages), `"status"`, func(i int) []byte {
			body := fmt.Sprintf(`{"contact_id":%q,"message":"yes","reply_to":%q}`, contact, ids[i])
			return post("/api/send-message/text", tokens[i], body)
		}),
		compare(o, t, p, fmt.Sprintf("a bare id: %d messages against 1,000", o.messages), `"message_id"`, func(i int) []byte {
			return get("/api/messages/"+string(ids[i]), tokens[i])
		}))
}

// compareChats compares the last page of a list of many chats with the first one, by offset and by cursor.
func compareChats(o options, t *table, p *process, token string) error {
	const path = "/api/chat?limit=50"
	deep := fmt.Sprintf("%s&offset=%d", path, wideChats-100)
	user := *p
	user.admin = token
	var page struct {
		Meta struct {
			Next string `json:"next_cursor"`
		}
	}
	if err := user.call("GET", deep, nil, &page); err != nil {
		return err
	}
	for _, by := range [][2]string{{"offset", deep}, {"cursor", path + "&cursor=" + page.Meta.Next}} {
		what := fmt.Sprintf("GET /api/chat by %s, the last page of %d chats against the first", by[0], wideChats)
		if err := compare(o, t, p, what, `"per_page":50`, func(i int) []byte { return get([]string{path, by[1]}[i], token) }); err != nil {
			return err
		}
	}
	return nil
}

// compare measures two requests, of which the second may take three times as long as the first.
func compare(o options, t *table, p *process, what, want string, request func(i int) []byte) error {
	var ratios []float64
	for range o.rounds {
		var took [2]time.Duration
		for i := range took {
			l, err := drive(p.addr, 1, [][]byte{request(i)}, want, o.slice/4)
			if err != nil {
				return err
			}
			took[i] = quantile(l.latencies, 0.5)
		}
		ratios = append(ratios, float64(took[1])/float64(took[0]))
	}
	t.add(what, fmt.Sprintf("%.2f times as long", median(ratios)), "<= 3", median(ratios) <= 3)
	return nil
}

// oldest returns the bare id of the oldest message with a contact on each channel.
func oldest(ctx context.Context, data string, contact parley.ContactID, channels ...parley.ChannelCode) (
	ids []parley.MessageID, err error) {
	db, err := store.Open(ctx, data+"/parley.db")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	for _, code := range channels {
		messages, _, _, err := db.HistoryAt(ctx, code, contact, 1, 1)
		if err != nil || len(messages) == 0 {
			return nil, fmt.Errorf("the oldest message of %s: %w", code, err)
		}
		ids = append(ids, messages[0].ID)
	}
	return ids, nil
}

// createChannels creates sandbox channels in a data directory, and returns a token of each.
func createChannels(ctx context.Context, o options, data string, codes ...string) (map[string]string, error) {
	tokens := map[string]string{}
	return tokens, withParley(ctx, o, data, func(p *process) error {
		for _, code := range codes {
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
}

// seed adds messages to chats of a channel, directly in the database.
func seed(ctx context.Context, data string, channel parley.ChannelCode, chats map[string]int) error {
	return seedAt(ctx, data, channel, chats, time.Now(), 0)
}

// seedAt leaves a time between the messages, of which the last is of an end.
func seedAt(ctx context.Context, data string, channel parley.ChannelCode, chats map[string]int, end time.Time, apart time.Duration) error {
	db, err := store.Open(ctx, data+"/parley.db")
	if err != nil {
		return err
	}
	defer db.Close()
	var numbers []string // of the messages, in their order
	for number, count := range chats {
		numbers = append(numbers, slices.Repeat([]string{number}, count)...)
	}
	at := end.Add(-time.Duration(len(numbers)) * apart)
	for some := range slices.Chunk(numbers, 10_000) {
		if err := db.Tx(ctx, func(tx *store.Tx) error {
			for i, number := range some {
				m := parley.Message{Channel: channel, Chat: parley.NewContactID(number), ID: parley.MessageID(rand.Text()), FromMe: i%2 == 0,
					Content: parley.Text{Body: fmt.Sprintf("Message number %d of a long conversation.", i)},
					Status:  parley.Delivered, CreatedAt: at}
				at = at.Add(apart)
				if err := tx.AddMessage(ctx, &m); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// measureDeletions measures how long sends of one channel wait while another is reset or deleted, to the end of the deletion.
func measureDeletions(ctx context.Context, o options, t *table) error {
	const small, large = "small", "large"
	sizes := map[parley.ChannelCode]int{small: 2000, large: o.messages / 2}
	return inTempDir(func(data string) error {
		tokens, err := createChannels(ctx, o, data, small, large)
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

// sendDuring is sendsDuring with the bound of deletions.
func sendDuring(p *process, t *table, what string, do func() error) error {
	return sendsDuring(p, t, what, 100*time.Millisecond, do)
}

// sendsDuring sends at a constant rate, and meanwhile calls do, until it returns. No send may wait longer than longest.
func sendsDuring(p *process, t *table, what string, longest time.Duration, do func() error) error {
	const perSecond, seconds = 200, 5
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
	t.add("longest send during "+what, fmt.Sprintf("%.0f ms (it took %.1f s)", ms(slowest), took.Seconds()),
		fmt.Sprintf("<= %.0f ms", ms(longest)), slowest <= longest)
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
