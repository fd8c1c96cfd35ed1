package otp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

const (
	// maxAnswers in answerWindow is how often a sender is answered: whoever floods a channel with old
	// codes gets no flood back.
	maxAnswers   = 3
	answerWindow = 10 * time.Minute

	// maxChannelAnswers in channelWindow is how often a channel says that something did not work,
	// whoever is told: a crowd of senders makes no bot of it either. Who logs in is always told: nobody
	// can do that without a link, which only the channel's own callers make.
	maxChannelAnswers = 1000
	channelWindow     = time.Hour

	// everybody is under whom the answers of a channel are counted together. It is no contact.
	everybody = parley.ContactID("")

	// maxSkew is how far the network's clock may be behind ours. A message that is older than its link
	// by more than that is not of now, whatever it carries.
	maxSkew = time.Minute
)

// Reply is what a sender is answered: a text, or a secret where it repeats the code.
type Reply struct {
	To      parley.ContactID
	Content parley.Content
}

// MatchMessage looks for the code of a login link in a message that somebody sent to a channel, before it is
// stored. Where there is one it is masked, so that neither history nor events hold it, and what Inbound
// returns does what follows, in the transaction that stores the message: it is nil where nothing does. A
// message that is not of now (an edit, or history) is to be shown to Inbound too, for the masking, but
// nothing may follow from it.
//
// The codes are looked up outside the transaction: a message may hold a thousand parts that look like one.
func (i *Issuer) MatchMessage(ctx context.Context, channel parley.Channel, m *parley.Message) (
	then func(*store.Tx) ([]Reply, error), err error) {
	text := m.Content.Text()
	known, err := i.known(ctx, channel.Code, text)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	senders, err := i.spellings(ctx, channel.Code, m.Chat, known)
	if err != nil {
		return nil, err
	}
	ahead := time.Duration(channel.Settings.ClockAhead)
	meant := meantBy(known, senders)
	try := parley.LinkTry{From: m.Chat, At: time.Now().Add(ahead).UTC().Truncate(time.Millisecond), Edited: true}
	if slices.Contains(senders, meant.link.Contact) {
		try.Alias = meant.link.Contact
	}
	if _, isText := m.Content.(parley.Text); isText { // a caption is not the prompt alone
		try.Edited = !samePrompt(text, fill(meant.link.Messages.Prompt, meant.code, meant.link.Name))
	}
	m.Content = hideIn(m.Content, known)
	if m.CreatedAt.Add(ahead + maxSkew).Before(meant.link.CreatedAt) {
		return nil, nil
	}
	return func(tx *store.Tx) ([]Reply, error) { return i.settle(ctx, tx, channel, meant, try) }, nil
}

const (
	// sameDigits is how many digits two spellings of one number share at their end: countries change what comes before the
	// subscriber's own digits. Only for such numbers it is worth asking the network.
	sameDigits = 7
	// learnTimeout bounds that. Other messages wait meanwhile.
	learnTimeout = 5 * time.Second
)

// spellings lists the spellings of the sender's number. A link may have been asked for under one that nobody has looked up.
func (i *Issuer) spellings(ctx context.Context, channel parley.ChannelCode, sender parley.ContactID, known []hit) ([]parley.ContactID, error) {
	all, err := i.Store.Spellings(ctx, channel, sender)
	if err != nil || i.LookUpNumber == nil {
		return all, err
	}
	for _, h := range known {
		asked := h.link.Contact
		if h.link.Status != parley.OTPStatusPending || slices.Contains(all, asked) || lastDigits(asked) != lastDigits(sender) {
			continue
		}
		learning, cancel := context.WithTimeout(ctx, learnTimeout)
		defer cancel()
		if err := i.LookUpNumber(learning, channel, asked); err != nil {
			i.Log.Warn("look up the number of a login link", "channel", channel, "link", h.link.ID, "error", err)
		}
		return i.Store.Spellings(ctx, channel, sender)
	}
	return all, nil
}

func lastDigits(c parley.ContactID) string {
	number := c.Number()
	return number[max(0, len(number)-sameDigits):]
}

// hit is the code of a link, where it stands in a text.
type hit struct {
	place
	link parley.OTPLink
}

// known returns where the codes of the channel's links stand in a text.
func (i *Issuer) known(ctx context.Context, channel parley.ChannelCode, text string) ([]hit, error) {
	codes := candidates(text)
	if len(codes) == 0 {
		return nil, nil
	}
	codeOf := make(map[string]string, len(codes)) // by hash
	var hashes [][]byte
	for _, pepper := range i.peppers { // whichever key the link was made with
		for n, hash := range linkHashes(pepper, channel, codes) {
			codeOf[string(hash)] = codes[n]
			hashes = append(hashes, hash)
		}
	}
	links, err := i.Store.LinksByHash(ctx, channel, hashes)
	if err != nil {
		return nil, fmt.Errorf("look up login links: %w", err)
	}
	var known []hit
	for _, link := range links {
		for _, p := range placesOf(codeOf[string(link.Hash)], text) {
			known = append(known, hit{p, link})
		}
	}
	slices.SortFunc(known, func(a, b hit) int { return cmp.Compare(a.at, b.at) })
	return known, nil
}

// meantBy returns the link that counts where a message carries the codes of several: one that is open
// and the sender's own, else one that is open, else the first.
func meantBy(known []hit, senders []parley.ContactID) hit {
	meant := known[0]
	for _, h := range known {
		if h.link.Status != parley.OTPStatusPending {
			continue
		}
		if slices.Contains(senders, h.link.Contact) {
			return h
		}
		if meant.link.Status != parley.OTPStatusPending {
			meant = h
		}
	}
	return meant
}

// settle does what follows from a try: it stores how the link stands now, tells of it, has the
// caller's address called and answers the sender.
func (i *Issuer) settle(ctx context.Context, tx *store.Tx, channel parley.Channel, h hit, try parley.LinkTry) ([]Reply, error) {
	was, err := tx.Link(ctx, h.link.ID) // as it is by now
	if errors.Is(err, parley.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read login link %s: %w", h.link.ID, err)
	}
	link, outcome := was.Try(try)
	if outcome.Event != "" || link.Others != was.Others { // else nothing changed
		if err := tx.UpdateLink(ctx, link); err != nil {
			return nil, fmt.Errorf("store login link %s: %w", link.ID, err)
		}
	}
	if outcome.Event != "" {
		if err := tell(ctx, tx, link, outcome, try.At); err != nil {
			return nil, fmt.Errorf("tell of login link %s: %w", link.ID, err)
		}
	}
	return i.answer(ctx, tx, channel, hit{h.place, link}, outcome.Answer, try)
}

// tell adds the event, and the call of the caller's address where there is one.
func tell(ctx context.Context, tx *store.Tx, link parley.OTPLink, o parley.LinkOutcome, at time.Time) error {
	event, err := publish(ctx, tx, o.Event, link.ID, link.Channel, link.Contact, o.Reason, at)
	if err != nil || o.Callback == "" {
		return err
	}
	return tx.AddDeliveries(ctx, []parley.Delivery{parley.NewCallback(event, o.Callback, link.Contact)})
}

// answer returns what the sender is told; nothing where enough was told lately, or where the channel
// may not write to it.
func (i *Issuer) answer(ctx context.Context, tx *store.Tx, channel parley.Channel, h hit, which parley.LinkAnswer, try parley.LinkTry) ([]Reply, error) {
	if channel.Accepts(try.From) != nil && (try.Alias == "" || channel.Accepts(try.Alias) != nil) {
		return nil, nil
	}
	if may, err := mayAnswer(ctx, tx, channel.Code, which, try); err != nil || !may {
		return nil, err
	}
	template := h.link.Messages.Text(which)
	text := fill(template, h.code, h.link.Name)
	if !strings.Contains(template, codePlace) {
		return []Reply{{try.From, parley.Text{Body: text}}}, nil
	}
	return []Reply{{try.From, parley.Secret{
		Shown: fill(template, mask, h.link.Name), OTP: h.link.ID, Encrypted: i.Keyring.Encrypt([]byte(text), string(h.link.ID)),
	}}}, nil
}

// mayAnswer reports whether the limits let a try be answered, and counts the answer if they do.
func mayAnswer(ctx context.Context, tx *store.Tx, channel parley.ChannelCode, which parley.LinkAnswer, try parley.LinkTry) (bool, error) {
	type count struct {
		of     parley.ContactID
		most   int
		window time.Duration
	}
	counts := []count{{try.From, maxAnswers, answerWindow}}
	if which != parley.AnswerSuccess {
		counts = append(counts, count{everybody, maxChannelAnswers, channelWindow})
	}
	for _, c := range counts {
		lately, err := tx.LinkReplies(ctx, channel, c.of, try.At.Add(-c.window))
		if err != nil {
			return false, fmt.Errorf("count answers: %w", err)
		}
		if len(lately) >= c.most {
			return false, nil
		}
	}
	for _, c := range counts {
		if err := tx.AddLinkReply(ctx, channel, c.of, try.At); err != nil {
			return false, fmt.Errorf("count an answer: %w", err)
		}
	}
	return true, nil
}

// PossibleReplies lists what a sender of a text may be answered because of a link; nothing where the text does
// not carry its code.
func (i *Issuer) PossibleReplies(l parley.OTPLink, text string) []string {
	for _, code := range candidates(text) {
		if !i.isCodeOf(l, code) {
			continue
		}
		var answers []string
		for _, which := range []parley.LinkAnswer{parley.AnswerSuccess, parley.AnswerFailed, parley.AnswerExpired} {
			answers = append(answers, fill(l.Messages.Text(which), code, l.Name))
		}
		return answers
	}
	return nil
}
