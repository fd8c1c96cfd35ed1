package sandbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
)

// WaitTimeout is the error of a wait in which nothing matched. Its text says nothing of what the
// messages were, so that it may be logged; [WaitTimeout.Sentence] does.
type WaitTimeout struct {
	Number  string
	Query   Query
	Arrived []Message // what did reach the phone after the cursor, the last maxArrived of it
	Total   int       // how many those were in all
}

const maxArrived = 10 // messages listed when a wait times out

func (e *WaitTimeout) Error() string {
	return fmt.Sprintf("no message matched within %s (%d arrived)", e.Query.Wait, e.Total)
}

// Sentence tells the caller what was waited for and what came instead.
func (e *WaitTimeout) Sentence() string {
	var b strings.Builder
	kind := "message"
	if e.Query.Kind != "" {
		kind = string(e.Query.Kind) + " message"
	}
	fmt.Fprintf(&b, "No %s to %s", kind, e.Number)
	if e.Query.Contains != "" {
		fmt.Fprintf(&b, " containing %q", e.Query.Contains)
	}
	fmt.Fprintf(&b, " within %s.", e.Query.Wait)
	switch e.Total {
	case 0:
		b.WriteString(" Nothing arrived at that phone after the cursor.")
		return b.String()
	case 1:
		b.WriteString(" 1 message did arrive at that phone after the cursor:")
	default:
		fmt.Fprintf(&b, " %d messages did arrive at that phone after the cursor", e.Total)
		if e.Total > len(e.Arrived) {
			fmt.Fprintf(&b, ", the last %d", len(e.Arrived))
		}
		b.WriteString(":")
	}
	for i, m := range e.Arrived {
		if i > 0 {
			b.WriteString(";")
		}
		fmt.Fprintf(&b, " %s %s %s %s", m.At.Format(time.TimeOnly), m.Kind, m.brief(), m.Status)
	}
	b.WriteString(".")
	return b.String()
}

// brief is what a list shows of a message.
func (m *Message) brief() string {
	const most = 60
	text := m.Body
	if text == "" && m.Media != nil {
		text = m.Media.Filename
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

// timedOut returns the error of a wait that ended, with what arrived instead.
func (n *Network) timedOut(ctx context.Context, channel parley.ChannelCode, number string, after int64, q Query) error {
	_, p, err := n.find(ctx, channel, number) // its cursors may have moved
	if err != nil {
		return err
	}
	e := &WaitTimeout{Number: p.Number, Query: q}
	err = n.scan(ctx, p, after, false, func(m Message) bool {
		e.Arrived = append(e.Arrived, m)
		if len(e.Arrived) > maxArrived {
			e.Arrived = e.Arrived[1:]
		}
		e.Total++
		return true
	})
	if err != nil {
		return err
	}
	return e
}
