package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
	"parley/internal/asset"
	"parley/internal/network/sandbox"
)

// pagePolicy lets a page load and call only this server.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// servePhone serves the target of login links on sandbox channels: a simulated phone with the prompt filled in. The
// ticket in the URL fragment, which browsers do not send, lets its script send the text as that phone.
func servePhone() http.Handler {
	page := asset.Page(mustRead("phone/page.html"))
	words := readPageWords("phone/words.json")
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		number, err := parley.ParseNumber(hr.PathValue("number"))
		if err != nil || number != hr.PathValue("number") {
			write(w, w.Header().Get("X-Request-Id"), refusal(errNoPhone))
			return
		}
		values := words.values(words.language(hr))
		values["Number"], values["Channel"], values["Text"] = number, "", ""
		query := hr.URL.Query()
		if code, err := parley.ParseChannelCode(query.Get("to")); err == nil {
			values["Channel"] = string(code)
		}
		if text := query.Get("text"); utf8.ValidString(text) && utf8.RuneCountInString(text) <= maxTapped {
			values["Text"] = text
		}
		text, err := page.Fill(values)
		if err != nil {
			write(w, w.Header().Get("X-Request-Id"), refusal(err))
			return
		}
		setPageHeaders(w.Header())
		w.Header().Set("Vary", "Accept-Language")
		w.Write(text) // the only error is a closed connection
	})
}

var errNoPhone = parley.Errorf(parley.NotFound, "This phone does not exist.")

func setPageHeaders(h http.Header) {
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Content-Type", typeHTML)
}

const (
	maxTapped = 4096             // characters, as in a text message
	tapWait   = 10 * time.Second // how long the page waits for a reply
)

type tapped struct {
	Answer    *string `json:"answer"` // null: no reply
	Timestamp string  `json:"timestamp"`
}

// tap sends a text as the phone of a ticket, and returns only the reply of the login link, no other message.
func (s *server) tap(ctx context.Context, r *request) (any, error) {
	ticket, text := r.Text("ticket", 1, 200), r.Text("text", 1, maxTapped)
	if err := r.Err(); err != nil {
		return nil, err
	}
	link, err := s.linkOfTicket(ctx, r.http, ticket)
	if err != nil {
		return nil, err
	}
	if err := s.checkOwner(ctx, string(link.Channel)); err != nil {
		return nil, err
	}
	sent, err := s.config.Sandbox.SendAs(ctx, link.Channel, link.Contact.Number(), sandbox.Outgoing{Content: parley.Text{Body: text}})
	if err != nil {
		return nil, err
	}
	data := tapped{Timestamp: parley.Stamp(sent.At)}
	if replies := s.config.OTP.PossibleReplies(link, text); len(replies) > 0 {
		data.Answer, err = s.awaitReply(ctx, link, sent.Cursor, replies)
	}
	return ok("Sent by the phone", data), err
}

// linkOfTicket returns the link of a ticket until it expires, only for the phone in the path. Tickets cannot be
// guessed, so failures do not count.
func (s *server) linkOfTicket(ctx context.Context, hr *http.Request, ticket string) (parley.OTPLink, error) {
	id, valid := s.config.OTP.LinkOfTicket(ticket)
	if !valid {
		return parley.OTPLink{}, errTicket
	}
	link, err := s.config.Store.Link(ctx, id)
	if err != nil {
		return link, notFoundAs(err, errTicket)
	}
	c, there := s.config.Gateway.Channel(link.Channel)
	if !there || c.Network != parley.Sandbox || link.Contact.Number() != hr.PathValue("number") ||
		!s.config.Gateway.Now(link.Channel).Before(link.ExpiresAt) {
		return link, errTicket
	}
	return link, nil
}

var errTicket = parley.Errorf(parley.NotFound, "This login link is invalid or has expired. Request a new one.")

// awaitReply waits for one of the replies of a link to arrive at the phone; nil: none came.
func (s *server) awaitReply(ctx context.Context, link parley.OTPLink, after sandbox.Cursor, replies []string) (*string, error) {
	deadline := time.Now().Add(tapWait)
	for left := tapWait; left > 0; left = time.Until(deadline) {
		q := sandbox.Query{After: after, Kind: parley.KindText, Wait: left}
		page, err := s.config.Sandbox.Messages(ctx, link.Channel, link.Contact.Number(), q)
		if _, late := errors.AsType[*sandbox.WaitTimeout](err); late {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range page.Messages {
			if slices.Contains(replies, m.Body) {
				return &m.Body, nil
			}
		}
		after = page.Cursor
	}
	return nil, nil
}

// baseURL is the base of links to this server: PublicURL, else the Host of the request. The Host is used only if it
// names this machine or a trusted proxy sent it: a forged header must not decide where a ticket leads.
func (s *server) baseURL(hr *http.Request) string {
	if s.config.PublicURL != "" {
		return s.config.PublicURL
	}
	if h, forwarded := hopFrom(hr.Context()); forwarded {
		return h.Base
	}
	scheme := "http"
	if hr.TLS != nil {
		scheme = "https"
	}
	switch remote, err := netip.ParseAddrPort(hr.RemoteAddr); {
	case err == nil && s.trusts(remote.Addr().Unmap()):
		if proto := readHeader(hr.Header, "X-Forwarded-Proto"); proto == "http" || proto == "https" {
			scheme = proto
		}
	case !NamesThisMachine(hr.Host):
		return s.config.URL
	}
	base := scheme + "://" + hr.Host
	if u, err := url.Parse(base); err != nil || u.Host != hr.Host || u.Host == "" || u.User != nil {
		return s.config.URL
	}
	return base
}

// NamesThisMachine reports whether a Host header is a loopback address, or localhost.
func NamesThisMachine(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil {
		return false
	}
	name := u.Hostname()
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
