package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"parley"
	"parley/internal/gateway"
)

// show prints the banner and then one line per fact, until ctx ends.
func (s *server) show(ctx context.Context) {
	io.WriteString(s.cfg.Screen, s.banner(ctx)) // a terminal that went away is not our concern
	v := view{nameOf: s.contactName}
	for ctx.Err() == nil {
		happens, unsubscribe := s.gateway.Activity()
		for open := true; open; {
			var a gateway.Activity
			select {
			case a, open = <-happens: // closed when we fell behind: look again from now on
			case <-ctx.Done():
				open = false
			}
			if open {
				io.WriteString(s.cfg.Screen, v.line(a)+"\n")
			}
		}
		unsubscribe()
	}
}

// contactName is how the screen calls a contact. Only a sandbox is asked for a name: elsewhere that would be
// a question to the network for every line.
func (s *server) contactName(channel parley.ChannelCode, id parley.ContactID) string {
	if c, ok := s.gateway.Channel(channel); !ok || c.Network != parley.Sandbox {
		return ShowNumber(id.Number())
	}
	if session, err := s.gateway.Session(channel); err == nil {
		if contact, err := session.Contact(context.Background(), id); err == nil && contact.Name != "" {
			return contact.Name
		}
	}
	return ShowNumber(id.Number())
}

// The widths of the columns of a line.
const (
	whoWidth    = 22
	kindWidth   = 10
	textWidth   = 28
	statusWidth = 10
	tookWidth   = 8
)

// view writes activity as lines. It remembers the message of the line before, so that what follows
// on it is not named again.
type view struct {
	nameOf func(parley.ChannelCode, parley.ContactID) string
	last   parley.MessageID
}

func (v *view) line(a gateway.Activity) string {
	at := a.At.Local().Format(time.TimeOnly)
	if a.State != "" {
		v.last = ""
		what := string(a.State)
		if a.Pairing != "" {
			what = "pairing: " + string(a.Pairing)
		}
		return strings.TrimRight(fmt.Sprintf("%s  %s%s%s", at, cell(string(a.Channel), whoWidth), cell(what, kindWidth+textWidth),
			Plain(a.Reason)), " ")
	}
	who, kind, said, id := "", "", "", string(a.ID)
	switch {
	case a.ID == v.last && a.Kind == "": // the line above says the rest
		id = ""
	default:
		from, to := string(a.Channel), v.nameOf(a.Channel, a.Contact)
		if !a.FromMe {
			from, to = to, from
		}
		who, kind, said = from+" → "+to, string(a.Kind), a.Text
	}
	v.last = a.ID
	if a.Failure != nil {
		id += "  " + Plain(a.Failure.Message)
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s%s%s%s%s%s", at,
		cell(who, whoWidth), cell(kind, kindWidth), cell(said, textWidth),
		cell(a.Status.String(), statusWidth), cell(took(a.Took), tookWidth), id), " ")
}

// cell fits a text into a column, with two blanks after it.
func cell(s string, width int) string {
	return text.Pad(text.Snip(Plain(s), width, "…"), width, ' ') + "  "
}

// Plain takes out of a text what would move the cursor: strangers write it.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != '\u200d' { // the joiner of emoji is harmless
			return ' '
		}
		return r
	}, s)
}

func took(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
