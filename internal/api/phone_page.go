package api

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
	"parley/internal/network/sandbox"
)

// The page at /phone/{number}, which a login link of a sandbox channel leads to: a simulated phone with
// the prompt typed in. It knows only what its address says; the ticket in the fragment, which browsers
// keep to themselves, lets its script send the text as that phone, and hear what is answered to it.
//
//go:embed phone/page.html phone/phone.js phone/phone.css
var phoneFiles embed.FS

// phonePolicy lets the page load and call this server alone, with no exceptions.
const phonePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// phoneView is what the page shows.
type phoneView struct {
	Number  string
	Channel string // empty: the address names none
	Text    string
}

// servePhone serves the page.
func servePhone() http.Handler {
	page := template.Must(template.ParseFS(phoneFiles, "phone/page.html"))
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		number, err := parley.ParseNumber(hr.PathValue("number"))
		if err != nil || number != hr.PathValue("number") {
			w.Header().Set("Content-Type", typeJSON[0])
			w.WriteHeader(http.StatusNotFound)
			w.Write([]byte(`{"message":"There is no such phone."}`))
			return
		}
		view := phoneView{Number: number}
		query := hr.URL.Query()
		if code, err := parley.ParseChannelCode(query.Get("to")); err == nil {
			view.Channel = string(code)
		}
		if text := query.Get("text"); utf8.ValidString(text) && utf8.RuneCountInString(text) <= maxTapped {
			view.Text = text
		}
		w.Header().Set("Content-Security-Policy", phonePolicy)
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page.Execute(w, view) // a reader that is gone learns nothing
	})
}

// servePhoneFile serves a file that the page loads.
func servePhoneFile(name, contentType string) http.Handler {
	body, err := phoneFiles.ReadFile("phone/" + name)
	if err != nil {
		panic(err) // cannot happen in a binary that was built
	}
	return newAsset(contentType, body)
}

const (
	maxTapped = 4096             // characters: the longest text that can be sent
	tapWait   = 10 * time.Second // how long the page waits for an answer
)

// tapped is what the page is told.
type tapped struct {
	Answer    *string `json:"answer"` // null: none came
	Timestamp string  `json:"timestamp"`
}

// tap sends a text as the phone that a ticket is for, and returns what the link's own answer to it was:
// nothing else that reached the phone.
func (s *server) tap(ctx context.Context, r *request) (envelope[tapped], error) {
	ticket, text := r.Text("ticket", 1, 200), r.Text("text", 1, maxTapped)
	if err := r.Err(); err != nil {
		return envelope[tapped]{}, err
	}
	link, err := s.linkOf(ctx, r.http, ticket)
	if err != nil {
		return envelope[tapped]{}, err
	}
	sent, err := s.Sandbox.SendAs(ctx, link.Channel, link.Contact.Number(), sandbox.Outgoing{Content: parley.Text{Body: text}})
	if err != nil {
		return envelope[tapped]{}, err
	}
	told := tapped{Timestamp: parley.Stamp(sent.At)}
	if answers := s.OTP.PossibleReplies(link, text); len(answers) > 0 {
		told.Answer, err = s.awaitAnswer(ctx, link, sent.Cursor, answers)
	}
	return ok("Sent by the phone", told), err
}

// linkOf returns the link that a ticket is for, while it is good: until the link expires, for the phone
// in the path alone. Tickets are too long to be guessed, so nobody counts who tries.
func (s *server) linkOf(ctx context.Context, hr *http.Request, ticket string) (parley.OTPLink, error) {
	id, ours := s.OTP.LinkOfTicket(ticket)
	if !ours {
		return parley.OTPLink{}, errTicket
	}
	link, err := s.Store.Link(ctx, id)
	if errors.Is(err, parley.ErrNotFound) {
		return link, errTicket
	}
	if err != nil {
		return link, err
	}
	c, there := s.Gateway.Channel(link.Channel)
	if !there || c.Network != parley.Sandbox || link.Contact.Number() != hr.PathValue("number") || !s.Gateway.Now(link.Channel).Before(link.ExpiresAt) {
		return link, errTicket
	}
	return link, nil
}

var errTicket = parley.Errorf(parley.NotFound, "This login link is not good, or not any more. Ask for a new one.")

// awaitAnswer waits for one of the answers that a link may give to arrive at the phone; nil: none came.
func (s *server) awaitAnswer(ctx context.Context, link parley.OTPLink, after sandbox.Cursor, answers []string) (*string, error) {
	deadline := time.Now().Add(tapWait)
	for left := tapWait; left > 0; left = time.Until(deadline) {
		page, err := s.Sandbox.Messages(ctx, link.Channel, link.Contact.Number(), sandbox.Query{After: after, Kind: parley.KindText, Wait: left})
		if _, late := errors.AsType[*sandbox.WaitTimeout](err); late {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range page.Messages {
			if slices.Contains(answers, m.Body) {
				return &m.Body, nil
			}
		}
		after = page.Cursor
	}
	return nil, nil
}

// baseURL is the address for links that lead back to this server: the one that the operator said, else
// that at which the caller reaches it. What the request says of that counts only where it names this
// machine, or comes by a proxy that is trusted: a ticket must not lead to wherever a header says.
func (s *server) baseURL(hr *http.Request) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	scheme := "http"
	if hr.TLS != nil {
		scheme = "https"
	}
	switch remote, err := netip.ParseAddrPort(hr.RemoteAddr); {
	case err == nil && s.trusts(remote.Addr().Unmap()):
		if proto := headerOf(hr.Header, "X-Forwarded-Proto"); proto == "http" || proto == "https" {
			scheme = proto
		}
	case !NamesThisMachine(hr.Host):
		return s.URL
	}
	base := scheme + "://" + hr.Host
	if u, err := url.Parse(base); err != nil || u.Host != hr.Host || u.Host == "" || u.User != nil {
		return s.URL
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
