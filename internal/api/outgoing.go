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
	"parley/internal/safehttp"
)

const (
	// maxFetches is how many files a token may have fetched at once.
	maxFetches = 4
	// fetchPatience is how long a request waits for others of its token to end their fetches.
	fetchPatience = 2 * time.Second
	// mediaPerMinute is how many bytes may be fetched for a token in a minute, unless the operator says
	// otherwise: a link of 28 Mbit/s, kept busy.
	mediaPerMinute = 200 << 20
	// fetchTime is how long all fetches of one request may take together.
	fetchTime = 45 * time.Second
)

// part is one message of a request: its fields are checked, but its file is not fetched yet.
type part struct {
	content parley.Content
	replyTo parley.MessageID
	form    form.Form // that it was read from, to note what turns out to be wrong later

	source *media.Source // the file to fetch; nil: there is none
	field  string        // the full path of the field that names the file

	preview, highQuality bool // of a text: whether to look for a link
}

// readText reads the fields of a text.
func (s *server) readText(f form.Form) part {
	return part{
		content:     parley.Text{Body: f.Text("message", 1, 4096)},
		preview:     f.Flag("linkPreview", true),
		highQuality: f.Flag("linkPreviewHighQuality", true),
		replyTo:     f.ReplyTo(),
		form:        f,
	}
}

// caption reads the optional text under a file.
func caption(f form.Form) string { return f.OptionalText("caption", 1, 1024) }

func (s *server) readImage(f form.Form) part {
	p := filePart(f)
	p.content = parley.Image{Caption: caption(f)}
	return p
}

func (s *server) readFile(f form.Form) part {
	p := filePart(f)
	p.content = parley.File{Caption: caption(f)}
	return p
}

func (s *server) readVideo(f form.Form) part {
	var p part
	if f.Has("videoUrl") && !f.Has("file") {
		p = fetchedPart(f, "videoUrl", f.Address("videoUrl"))
	} else {
		p = filePart(f)
	}
	p.content = parley.Video{Caption: caption(f)}
	return p
}

var audioPattern = regexp.MustCompile(`^https?://.*\.(opus|mp3|wav|ogg|aac|m4a)$`)

func (s *server) readVoice(f form.Form) part {
	url := f.Address("audioUrl")
	if url != "" && !audioPattern.MatchString(url) {
		f.Fail("audioUrl", "must be the address of an audio file: http:// or https:// at its beginning and .opus, .mp3, .wav, .ogg, .aac or .m4a at its end, in lower case.")
	}
	p := fetchedPart(f, "audioUrl", url)
	p.content = parley.Voice{}
	return p
}

// readPoolVoice is readVoice for a pool's item, which may also name its file as the others do.
func (s *server) readPoolVoice(f form.Form) part {
	if f.Has("audioUrl") || !f.Has("file") {
		return s.readVoice(f)
	}
	p := filePart(f)
	p.content = parley.Voice{}
	return p
}

func (s *server) readLocation(f form.Form) part {
	return part{
		content: parley.Location{
			Latitude:  f.Latitude("latitude"),
			Longitude: f.Longitude("longitude"),
			Title:     f.OptionalText("title", 1, 100),
		},
		replyTo: f.ReplyTo(),
		form:    f,
	}
}

func (s *server) readPoll(f form.Form) part {
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
	return part{content: poll, replyTo: f.ReplyTo(), form: f}
}

// filePart reads the object that names a file to send.
func filePart(f form.Form) part {
	inside, given := f.Object("file", false)
	if !given {
		if !f.Has("file") {
			inside.Fail("url", "is required: the http or https address of the file to send.")
		}
		return part{replyTo: f.ReplyTo(), form: f}
	}
	p := fetchedPart(f, "file.url", inside.Address("url"))
	p.source.Filename = inside.OptionalText("filename", 0, 255)
	p.source.MIME = inside.OptionalText("mimeType", 0, 255)
	if kind := p.source.MIME; kind != "" {
		if name, _, err := mime.ParseMediaType(kind); err != nil || !strings.Contains(name, "/") {
			inside.Fail("mimeType", "must be a media type, for example image/jpeg.")
		}
	}
	return p
}

func fetchedPart(f form.Form, name, url string) part {
	return part{source: &media.Source{URL: url}, field: f.Path(name), replyTo: f.ReplyTo(), form: f}
}

// checkReply notes a reply to a message that the channel does not have.
func (s *server) checkReply(ctx context.Context, channel parley.ChannelCode, p part) error {
	if p.replyTo == "" {
		return nil
	}
	m, err := s.Store.Message(ctx, channel, parley.MessageRef{ID: p.replyTo})
	switch {
	case errors.Is(err, parley.ErrAmbiguous): // there are even several
		return nil
	case errors.Is(err, parley.ErrNotFound), err == nil && !m.Content.Kind().IsRecord():
		p.form.Fail("reply_to", "names no message of this channel.")
		return nil
	}
	return err
}

// drafts fetches the files of the parts and makes drafts of them. Whatever cannot be fetched is noted
// under the field that names it.
func (s *server) drafts(ctx context.Context, r *request, to parley.ContactID, parts []part) ([]gateway.Draft, error) {
	if err := s.mayFetch(r.token.ID, parts); err != nil {
		return nil, err
	}
	defer func() { r.within(s.mediaLeft(r.token.ID)) }()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	drafts := make([]gateway.Draft, len(parts))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxFetches)
	for i, p := range parts {
		drafts[i] = gateway.Draft{To: to, Content: p.content, ReplyTo: p.replyTo}
		if !p.needsWork() {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() {
				if trouble := recover(); trouble != nil {
					errs[i] = &panicError{trouble, debug.Stack()}
				}
				<-slots
			}()
			drafts[i].Content, errs[i] = s.fetch(ctx, r.token.ID, p)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if e, ok := errors.AsType[*media.Error](err); ok {
			r.Note(parts[i].field, e.Sentence)
		} else if err != nil {
			s.discard(drafts)
			return nil, err
		}
	}
	if err := r.Err(); err != nil {
		s.discard(drafts)
		return nil, err
	}
	return drafts, nil
}

func (p part) needsWork() bool { return p.source != nil || p.preview && mayHoldLink(p.content.Text()) }

// mayFetch refuses to fetch files where too much was fetched for the token of late.
func (s *server) mayFetch(token parley.TokenID, parts []part) error {
	if !slices.ContainsFunc(parts, func(p part) bool { return p.source != nil }) {
		return nil
	}
	if q := s.mediaLeft(token); q.Refused {
		return limit.Exceeded(q, fmt.Sprintf("More than %s of files were fetched for this token within a minute. Try again after the time in Retry-After.", safehttp.Size(q.Most)))
	}
	return nil
}

var errManyFetches = limit.Exceeded(limit.Quota{Name: limitFetches, Unit: limit.UnitAtOnce, Most: maxFetches, Wait: fetchPatience},
	fmt.Sprintf("This token has %d files fetched at once, the most that it may. Try again when one is done.", maxFetches))

// mediaLeft is how many bytes may be fetched for a token now.
func (s *server) mediaLeft(token parley.TokenID) limit.Quota {
	if s.fetched == nil {
		return limit.Quota{}
	}
	q := s.fetched.Look(token, time.Now())
	q.Name, q.Unit = limitFetches, limit.UnitBytes
	return q
}

// fetch fetches what a part points at, in its turn among all that is fetched for the token, and counts it for
// that. A text goes without a preview rather than wait, or not at all.
func (s *server) fetch(ctx context.Context, token parley.TokenID, p part) (parley.Content, error) {
	patience := fetchPatience
	if p.source == nil {
		patience = 0
	}
	if !s.fetches.Take(token, ctx.Done(), patience) {
		if p.source == nil {
			return p.content, nil
		}
		return p.content, errManyFetches
	}
	defer s.fetches.Give(token)
	count := func(n int) {
		if s.fetched != nil {
			s.fetched.Add(token, int64(n), time.Now())
		}
	}
	if p.source != nil {
		p.source.OnRead = count
	}
	switch c := p.content.(type) {
	case parley.Text:
		if !s.mediaLeft(token).Refused {
			c.Preview = s.Media.Preview(ctx, c.Body, p.highQuality, count)
		}
		return c, nil
	case parley.Image:
		var err error
		c.Media, err = s.Media.Image(ctx, *p.source)
		return c, err
	case parley.Video:
		var err error
		c.Media, err = s.Media.Video(ctx, *p.source)
		return c, err
	case parley.File:
		var err error
		c.Media, err = s.Media.File(ctx, *p.source)
		return c, err
	case parley.Voice:
		var err error
		c.Media, err = s.Media.Voice(ctx, *p.source)
		return c, err
	}
	return p.content, nil
}

// discard removes the files of drafts that are not sent after all.
func (s *server) discard(drafts []gateway.Draft) {
	for _, d := range drafts {
		if m := parley.MediaOf(d.Content); m != nil && m.Key != "" {
			_ = s.Media.Remove(m.Key) // what stays behind only takes room
		}
	}
}
