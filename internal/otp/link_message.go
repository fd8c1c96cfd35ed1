package otp

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

const (
	// maxReplies in replyWindow bounds the replies to one sender who floods a channel with old codes.
	maxReplies  = 3
	replyWindow = 10 * time.Minute

	// maxChannelReplies in channelWindow bounds the replies to all senders, except for successes: those need a link,
	// which only the channel's own callers make.
	maxChannelReplies = 1000
	channelWindow     = time.Hour

	// allSenders is the key under which all replies of a channel are counted.
	allSenders = parley.ContactID("")

	// maxSkew is how far the network's clock may be behind. A message that is older than its link by more is no try.
	maxSkew = time.Minute
)

// Reply is a reply to a try: a text, or a secret if it repeats the code.
type Reply struct {
	To      parley.ContactID
	Content parley.Content
}

// Hit is a message that carries the code of a login link.
type Hit struct {
	match match
	try   parley.LinkTry
}

// MatchMessage finds the code of a login link in an inbound message before it is stored, and masks it. The caller must pass the hit
// to Redeem in the transaction that stores the message; nil: there is nothing to do. For an edit or history the caller must not
// redeem it.
//
// Codes are looked up outside the transaction: a message may have a thousand candidates.
func (i *Issuer) MatchMessage(ctx context.Context, channel parley.Channel, m *parley.Message) (*Hit, error) {
	text := m.Content.Text()
	matches, err := i.findMatches(ctx, channel.Code, text)
	if err != nil || len(matches) == 0 {
		return nil, err
	}
	senders, err := i.spellings(ctx, channel.Code, m.Chat, matches)
	if err != nil {
		return nil, err
	}
	ahead := time.Duration(channel.Settings.ClockAhead)
	best := bestMatch(matches, senders)
	try := parley.LinkTry{From: m.Chat, At: time.Now().Add(ahead).UTC().Truncate(time.Millisecond), Edited: true}
	if slices.Contains(senders, best.link.Contact) {
		try.Alias = best.link.Contact
	}
	if _, isText := m.Content.(parley.Text); isText { // a caption is never the prompt alone
		try.Edited = !samePrompt(text, fill(best.link.Messages.Prompt, best.code, best.link.Name))
	}
	m.Content = maskContent(m.Content, matches)
	if m.CreatedAt.Add(ahead + maxSkew).Before(best.link.CreatedAt) {
		return nil, nil
	}
	return &Hit{best, try}, nil
}

const (
	// sameDigits is how many digits two spellings of one number share at their end: countries change the digits before.
	// The network is asked for such numbers only.
	sameDigits = 7
	// lookUpTimeout is short: other messages wait meanwhile.
	lookUpTimeout = 5 * time.Second
)

// spellings lists the spellings of the sender's number. If a link has one that was never looked up, it asks the network.
func (i *Issuer) spellings(
	ctx context.Context, channel parley.ChannelCode, sender parley.ContactID, matches []match,
) ([]parley.ContactID, error) {
	all, err := i.config.Store.Spellings(ctx, channel, sender)
	if err != nil || i.config.LookUpNumber == nil {
		return all, err
	}
	for _, h := range matches {
		asked := h.link.Contact
		if h.link.Status != parley.OTPStatusPending || slices.Contains(all, asked) || lastDigits(asked) != lastDigits(sender) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, lookUpTimeout)
		defer cancel()
		if err := i.config.LookUpNumber(limited, channel, asked); err != nil {
			i.config.Log.Warn("look up the number of a login link", "channel", channel, "link", h.link.ID, "error", err)
		}
		return i.config.Store.Spellings(ctx, channel, sender)
	}
	return all, nil
}

func lastDigits(c parley.ContactID) string {
	number := c.Number()
	return number[max(0, len(number)-sameDigits):]
}

type match struct {
	at   int // of its first byte
	code string
	link parley.OTPLink
}

// findMatches finds the codes of the channel's links in a text, sorted by position.
func (i *Issuer) findMatches(ctx context.Context, channel parley.ChannelCode, text string) ([]match, error) {
	codes := candidates(text)
	if len(codes) == 0 {
		return nil, nil
	}
	codeOf := make(map[string]string, len(codes)) // by hash
	var hashes [][]byte
	for _, pepper := range i.peppers { // the link may have an older key
		h := hmac.New(sha256.New, pepper)
		for _, code := range codes {
			hash := linkHash(h, channel, code)
			codeOf[string(hash)] = code
			hashes = append(hashes, hash)
		}
	}
	links, err := i.config.Store.LinksByHash(ctx, channel, hashes)
	if err != nil {
		return nil, fmt.Errorf("look up login links: %w", err)
	}
	var matches []match
	for _, link := range links {
		matches = append(matches, matchLink(link, codeOf[string(link.Hash)], text)...)
	}
	slices.SortFunc(matches, func(a, b match) int { return cmp.Compare(a.at, b.at) })
	return matches, nil
}

// bestMatch chooses an open link of the sender, else an open link, else the first.
func bestMatch(matches []match, senders []parley.ContactID) match {
	best := matches[0]
	for _, h := range matches {
		if h.link.Status != parley.OTPStatusPending {
			continue
		}
		if slices.Contains(senders, h.link.Contact) {
			return h
		}
		if best.link.Status != parley.OTPStatusPending {
			best = h
		}
	}
	return best
}

// Redeem applies a hit to its login link, and returns the reply to the sender; nil: none.
func (i *Issuer) Redeem(ctx context.Context, tx *store.Tx, channel parley.Channel, hit *Hit) (*Reply, error) {
	h, try := hit.match, hit.try
	was, err := tx.Link(ctx, h.link.ID) // it may have changed
	if errors.Is(err, parley.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read login link %s: %w", h.link.ID, err)
	}
	link, outcome := was.Try(try)
	if outcome.Event != "" || link.Others != was.Others {
		if err := tx.UpdateLink(ctx, link); err != nil {
			return nil, fmt.Errorf("store login link %s: %w", link.ID, err)
		}
	}
	if outcome.Event != "" {
		if err := publishOutcome(ctx, tx, link, outcome, try.At); err != nil {
			return nil, fmt.Errorf("publish the outcome of login link %s: %w", link.ID, err)
		}
	}
	h.link = link
	return i.replyTo(ctx, tx, channel, h, outcome.Reply, try)
}

func publishOutcome(ctx context.Context, tx *store.Tx, link parley.OTPLink, o parley.LinkOutcome, at time.Time) error {
	event, err := publish(ctx, tx, o.Event, link.ID, link.Channel, link.Contact, o.Reason, at)
	if err != nil || o.Callback == "" {
		return err
	}
	return tx.AddCallback(ctx, event, o.Callback, link.Contact)
}

// replyTo returns the reply to the sender; nil if there were too many lately, or the channel may not write to it.
func (i *Issuer) replyTo(
	ctx context.Context, tx *store.Tx, channel parley.Channel, h match, which parley.LinkReply, try parley.LinkTry,
) (*Reply, error) {
	if channel.Accepts(try.From) != nil && (try.Alias == "" || channel.Accepts(try.Alias) != nil) {
		return nil, nil
	}
	if may, err := mayReply(ctx, tx, channel.Code, which, try); err != nil || !may {
		return nil, err
	}
	template := h.link.Messages.Text(which)
	text := fill(template, h.code, h.link.Name)
	if !strings.Contains(template, codePlaceholder) {
		return &Reply{try.From, parley.Text{Body: text, AskNumber: try.From.IsHidden()}}, nil
	}
	return &Reply{try.From, parley.Secret{
		Shown: fill(template, mask, h.link.Name), OTP: h.link.ID, Encrypted: i.config.Keyring.Encrypt([]byte(text), string(h.link.ID)),
	}}, nil
}

func mayReply(ctx context.Context, tx *store.Tx, channel parley.ChannelCode, which parley.LinkReply, try parley.LinkTry) (bool, error) {
	type count struct {
		of     parley.ContactID
		most   int
		window time.Duration
	}
	counts := []count{{try.From, maxReplies, replyWindow}}
	if which != parley.ReplySuccess {
		counts = append(counts, count{allSenders, maxChannelReplies, channelWindow})
	}
	for _, c := range counts {
		lately, err := tx.LinkReplies(ctx, channel, c.of, try.At.Add(-c.window))
		if err != nil {
			return false, fmt.Errorf("count replies: %w", err)
		}
		if len(lately) >= c.most {
			return false, nil
		}
	}
	for _, c := range counts {
		if err := tx.AddLinkReply(ctx, channel, c.of, try.At); err != nil {
			return false, fmt.Errorf("count a reply: %w", err)
		}
	}
	return true, nil
}

// PossibleReplies lists the possible replies to a text that carries the code of a link; nothing if it does not.
func (i *Issuer) PossibleReplies(l parley.OTPLink, text string) []string {
	for _, code := range candidates(text) {
		isCode := func(pepper []byte) bool {
			return hmac.Equal(linkHash(hmac.New(sha256.New, pepper), l.Channel, code), l.Hash)
		}
		if !slices.ContainsFunc(i.peppers, isCode) {
			continue
		}
		var replies []string
		for _, which := range []parley.LinkReply{parley.ReplySuccess, parley.ReplyFailed, parley.ReplyExpired} {
			replies = append(replies, fill(l.Messages.Text(which), code, l.Name))
		}
		return replies
	}
	return nil
}
