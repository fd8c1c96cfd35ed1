package api

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/api/limit"
	"parley/internal/gateway"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/safehttp"
)

const (
	// maxFetches is how many files are fetched for a token concurrently.
	maxFetches = 4
	// fetchWait is how long a request waits for others of its token to end their fetches.
	fetchWait = 2 * time.Second
	// mediaPerMinute is the default limit of bytes fetched for a token: 28 Mbit/s.
	mediaPerMinute = 200 << 20
	// fetchTime is the timeout of all fetches of one request.
	fetchTime = 45 * time.Second
)

// outgoing is one message of a request: its fields are checked, its file is not fetched yet.
type outgoing struct {
	content parley.Content
	replyTo parley.MessageID
	form    form.Form // for errors that are found later

	source *media.Source // the file to fetch; nil: none
	field  string        // the full path of the field that names the file

	preview, highQuality bool // of a text: preview a link
}

// readers read a message of a pool, or one that a simulated phone sends, by its type.
var readers = map[parley.Kind]func(form.Form) outgoing{
	parley.KindText: readText, parley.KindImage: readImage, parley.KindVideo: readVideo, parley.KindFile: readFile,
	parley.KindVoice: readVoice, parley.KindSticker: readSticker, parley.KindLocation: readLocation, parley.KindContact: readContacts,
}

func readText(f form.Form) outgoing {
	return outgoing{
		content:     parley.Text{Body: f.Text("message", 1, maxText), Mentions: mentions(f)},
		preview:     f.Flag("linkPreview", true),
		highQuality: f.Flag("linkPreviewHighQuality", true),
		replyTo:     f.ReplyTo(),
		form:        f,
	}
}

// mentions reads who is named in a text.
func mentions(f form.Form) []parley.ContactID {
	var ids []parley.ContactID
	f.List("mentions", 0, maxParticipants, false, func(f form.Form, index string) {
		if id := f.Contact(index); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	})
	return ids
}

func caption(f form.Form) string { return f.OptionalText("caption", 1, 1024) }

func readImage(f form.Form) outgoing {
	p := readFileOr(f, "url")
	p.content = parley.Image{Caption: caption(f)}
	return p
}

func readFile(f form.Form) outgoing {
	p := readFileField(f)
	p.content = parley.File{Caption: caption(f)}
	return p
}

func readVideo(f form.Form) outgoing {
	p := readFileOr(f, "videoUrl")
	p.content = parley.Video{Caption: caption(f)}
	return p
}

var audioPattern = regexp.MustCompile(`^https?://.*\.(opus|mp3|wav|ogg|aac|m4a)$`)

func readVoice(f form.Form) outgoing {
	if f.Has("file") && !f.Has("audioUrl") {
		p := readFileField(f)
		p.content = parley.Voice{}
		return p
	}
	url := f.Address("audioUrl")
	if url != "" && !audioPattern.MatchString(url) {
		f.Fail("audioUrl", "must be the http or https address of an audio file, ending in .opus, .mp3, .wav, .ogg, .aac or .m4a (lower case).")
	}
	p := withSource(f, "audioUrl", &media.Source{URL: url})
	p.content = parley.Voice{}
	return p
}

// readSticker reads a sticker. It has no caption.
func readSticker(f form.Form) outgoing {
	p := readFileField(f)
	p.content = parley.Sticker{}
	return p
}

func readLocation(f form.Form) outgoing {
	return outgoing{
		content: parley.Location{
			Latitude:  f.Latitude("latitude"),
			Longitude: f.Longitude("longitude"),
			Title:     f.OptionalText("title", 1, 100),
			Address:   f.OptionalText("address", 1, 300),
		},
		replyTo: f.ReplyTo(),
		form:    f,
	}
}

const (
	maxText        = 4096 // characters
	maxCards       = 20
	maxCardNumbers = 10
	// maxSpelledNumber is the length of a number with blanks and signs.
	maxSpelledNumber = 60
)

func readContacts(f form.Form) outgoing {
	var contacts parley.Contacts
	f.List("contacts", 1, maxCards, true, func(f form.Form, index string) {
		card, isObject := f.Object(index, true)
		if !isObject {
			return
		}
		name := card.Text("name", 1, 100)
		var numbers []string
		card.List("numbers", 1, maxCardNumbers, true, func(f form.Form, index string) {
			if text := f.Text(index, 1, maxSpelledNumber); text != "" {
				numbers = append(numbers, f.CheckNumber(index, text))
			}
		})
		contacts.Cards = append(contacts.Cards, parley.NewContactCard(name, numbers))
	})
	if len(contacts.Cards) == 1 {
		contacts.Title = contacts.Cards[0].Name
	} else {
		contacts.Title = fmt.Sprintf("%d contacts", len(contacts.Cards))
	}
	return outgoing{content: contacts, replyTo: f.ReplyTo(), form: f}
}

func readPoll(f form.Form) outgoing {
	poll := parley.Poll{
		Title:    f.Text("title", 1, 255),
		Options:  f.Texts("options", 2, 12, 1, 100),
		Multiple: f.Bool("is_multiple_answer", false),
	}
	seen := map[string]bool{}
	for i, option := range poll.Options {
		if option != "" && seen[option] {
			f.Fail(fmt.Sprintf("options.%d", i), "must differ from the other options.")
		}
		seen[option] = true
	}
	return outgoing{content: poll, replyTo: f.ReplyTo(), form: f}
}

// readFileOr reads the field file or, without one, a field with the address of the file.
func readFileOr(f form.Form, address string) outgoing {
	if f.Has(address) && !f.Has("file") {
		return withSource(f, address, fileSource(f, address))
	}
	return readFileField(f)
}

func readFileField(f form.Form) outgoing {
	inside, given := f.Object("file", false)
	if !given {
		if !f.Has("file") {
			inside.Fail("url", "is required: the address of the file to send, or the id of an uploaded one.")
		}
		return outgoing{replyTo: f.ReplyTo(), form: f}
	}
	p := withSource(f, "file.url", fileSource(inside, "url"))
	p.source.Filename = inside.OptionalText("filename", 0, 255)
	if kind := inside.OptionalText("mimeType", 0, 255); kind != "" {
		if name, _, err := mime.ParseMediaType(kind); err != nil || !strings.Contains(name, "/") {
			inside.Fail("mimeType", "must be a media type, for example image/jpeg.")
		}
		p.source.MIME = kind
	}
	return p
}

func withSource(f form.Form, name string, src *media.Source) outgoing {
	return outgoing{source: src, field: f.Path(name), replyTo: f.ReplyTo(), form: f}
}

func (s *server) checkReply(ctx context.Context, channel parley.ChannelCode, p outgoing) error {
	if p.replyTo == "" {
		return nil
	}
	m, err := s.config.Store.Message(ctx, channel, parley.MessageRef{ID: p.replyTo})
	switch {
	case errors.Is(err, parley.ErrAmbiguous): // it exists, in several chats
		return nil
	case errors.Is(err, parley.ErrNotFound), err == nil && !m.Content.Kind().InHistory():
		p.form.Fail("reply_to", "names a message that does not exist on this channel.")
		return nil
	}
	return err
}

// drafts fetches the files and returns drafts. A file that cannot be fetched fails its field.
func (s *server) drafts(
	ctx context.Context, r *request, channel parley.ChannelCode, to parley.ContactID, items []outgoing,
) ([]gateway.Draft, error) {
	if err := s.mayFetch(r.token.ID, items); err != nil {
		return nil, err
	}
	defer func() { r.noteQuota(s.mediaLeft(r.token.ID)) }()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	drafts := make([]gateway.Draft, len(items))
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxFetches)
	for i, p := range items {
		drafts[i] = gateway.Draft{To: to, Content: p.content, ReplyTo: p.replyTo}
		if !p.needsWork() {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = &panicError{p, debug.Stack()}
				}
				<-slots
			}()
			drafts[i].Content, errs[i] = s.fetch(ctx, r.token.ID, channel, p)
		})
	}
	wg.Wait()
	s.checkFiles(r, channel, items, drafts, errs)
	for i, err := range errs {
		if e, ok := errors.AsType[*media.Error](err); ok {
			r.Note(items[i].field, e.Sentence)
		} else if err != nil {
			s.discard(ctx, drafts)
			return nil, err
		}
	}
	if err := r.Err(); err != nil {
		s.discard(ctx, drafts)
		return nil, err
	}
	return drafts, nil
}

// checkFiles notes the files that the network of a channel does not take.
func (s *server) checkFiles(r *request, channel parley.ChannelCode, items []outgoing, drafts []gateway.Draft, errs []error) {
	checker := s.fileChecker(channel)
	for i := range drafts {
		if checker == nil || items[i].source == nil || errs[i] != nil {
			continue
		}
		if sentence := checker.CheckFile(drafts[i].Content); sentence != "" {
			r.Note(items[i].field, sentence)
		}
	}
}

// fileChecker is the driver of a channel whose network takes only some files; nil: it takes all.
func (s *server) fileChecker(channel parley.ChannelCode) network.FileChecker {
	c, _ := s.config.Gateway.Channel(channel)
	checker, _ := s.config.Gateway.Drivers[c.Network].(network.FileChecker)
	return checker
}

func (p outgoing) needsWork() bool {
	return p.source != nil || p.preview && mayHoldLink(p.content.Text())
}

func (s *server) mayFetch(token parley.TokenID, items []outgoing) error {
	if !slices.ContainsFunc(items, func(p outgoing) bool { return countsBytes(p.source) }) {
		return nil
	}
	if q := s.mediaLeft(token); q.Refused {
		return limit.Exceeded(q, fmt.Sprintf(
			"More than %s of files were fetched for this token within a minute. Try again after the time in Retry-After.", safehttp.Size(q.Most)))
	}
	return nil
}

var errManyFetches = limit.Exceeded(limit.Quota{Name: limitFetches, Unit: limit.UnitAtOnce, Most: maxFetches, Wait: fetchWait},
	fmt.Sprintf("%d files are being fetched for this token, which is the limit. Try again later.", maxFetches))

func (s *server) mediaLeft(token parley.TokenID) limit.Quota {
	if s.fetched == nil {
		return limit.Quota{}
	}
	q := s.fetched.Peek(token, time.Now())
	q.Name, q.Unit = limitFetches, limit.UnitBytes
	return q
}

// fetch fetches the file or the preview of a message within the token's limits. A text does not wait: it is sent
// without a preview instead.
func (s *server) fetch(ctx context.Context, token parley.TokenID, channel parley.ChannelCode, p outgoing) (_ parley.Content, err error) {
	wait := fetchWait
	switch {
	case p.source == nil:
		wait = 0
	case !isFetched(p.source): // no other server holds it up
		wait = fetchTime
	}
	if !s.fetches.Acquire(token, ctx.Done(), wait) {
		if p.source == nil {
			return p.content, nil
		}
		return p.content, errManyFetches
	}
	defer s.fetches.Release(token)
	count := func(n int) {
		if s.fetched != nil {
			s.fetched.Add(token, int64(n), time.Now())
		}
	}
	if countsBytes(p.source) {
		p.source.OnRead = count
	}
	if p.source != nil {
		p.source.Channel = channel
		if err := s.openSource(ctx, channel, p.source); err != nil {
			return p.content, err
		}
		if checker := s.fileChecker(channel); checker != nil {
			p.source.Takes = func(m parley.Media) bool { return checker.CheckFile(parley.WithMedia(p.content, m)) == "" }
		}
	}
	switch c := p.content.(type) {
	case parley.Text:
		if !s.mediaLeft(token).Refused {
			c.Preview = s.config.Media.Preview(ctx, c.Body, p.highQuality, count)
		}
		return c, nil
	case parley.Image:
		c.Media, err = s.config.Media.Image(ctx, *p.source)
		return c, err
	case parley.Video:
		c.Media, err = s.config.Media.Video(ctx, *p.source)
		return c, err
	case parley.File:
		c.Media, err = s.config.Media.File(ctx, *p.source)
		return c, err
	case parley.Voice:
		c.Media, err = s.config.Media.Voice(ctx, *p.source)
		return c, err
	case parley.Sticker:
		c.Media, err = s.config.Media.Sticker(ctx, *p.source)
		return c, err
	case parley.Template:
		file, err := s.config.Media.File(ctx, *p.source)
		return parley.WithMedia(c, file), err
	}
	return p.content, nil
}

func (s *server) discard(ctx context.Context, drafts []gateway.Draft) {
	for _, d := range drafts {
		if m := parley.MediaIn(d.Content); m != nil && m.Key != "" {
			s.removeFile(ctx, *m)
		}
	}
}

// removeFile removes a file that nothing names, also if the caller has left.
func (s *server) removeFile(ctx context.Context, m parley.Media) {
	s.config.Gateway.RemoveFiles(ctx, []parley.Media{m})
}
