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
	form    form // that it was read from, to note what turns out to be wrong later

	source *media.Source // the file to fetch; nil: there is none
	field  string        // the full path of the field that names the file

	preview, highQuality bool // of a text: whether to look for a link
}

// readText reads the fields of a text.
func (s *server) readText(f form) part {
	return part{
		content:     parley.Text{Body: f.text("message", 1, 4096)},
		preview:     f.flag("linkPreview", true),
		highQuality: f.flag("linkPreviewHighQuality", true),
		replyTo:     f.replyTo(),
		form:        f,
	}
}

// caption reads the optional text under a file.
func (f form) caption() string { return f.optionalText("caption", 1, 1024) }

func (s *server) readImage(f form) part {
	p := f.file()
	p.content = parley.Image{Caption: f.caption()}
	return p
}

func (s *server) readFile(f form) part {
	p := f.file()
	p.content = parley.File{Caption: f.caption()}
	return p
}

func (s *server) readVideo(f form) part {
	var p part
	if f.has("videoUrl") && !f.has("file") {
		p = f.fetched("videoUrl", f.address("videoUrl"))
	} else {
		p = f.file()
	}
	p.content = parley.Video{Caption: f.caption()}
	return p
}

var audioPattern = regexp.MustCompile(`^https?://.*\.(opus|mp3|wav|ogg|aac|m4a)$`)

func (s *server) readVoice(f form) part {
	url := f.address("audioUrl")
	if url != "" && !audioPattern.MatchString(url) {
		f.fail("audioUrl", "must be the address of an audio file: http:// or https:// at its beginning and .opus, .mp3, .wav, .ogg, .aac or .m4a at its end, in lower case.")
	}
	p := f.fetched("audioUrl", url)
	p.content = parley.Voice{}
	return p
}

// readPoolVoice is readVoice for a pool's item, which may also name its file as the others do.
func (s *server) readPoolVoice(f form) part {
	if f.has("audioUrl") || !f.has("file") {
		return s.readVoice(f)
	}
	p := f.file()
	p.content = parley.Voice{}
	return p
}

func (s *server) readLocation(f form) part {
	return part{
		content: parley.Location{
			Latitude:  f.degrees("latitude", latitudePattern, 90, `degrees in a string, from "-90" to "90" with at most 10 decimals, for example "-6.2088"`),
			Longitude: f.degrees("longitude", longitudePattern, 180, `degrees in a string, from "-180" to "180" with at most 10 decimals, for example "106.8456"`),
			Title:     f.optionalText("title", 1, 100),
		},
		replyTo: f.replyTo(),
		form:    f,
	}
}

func (s *server) readPoll(f form) part {
	poll := parley.Poll{
		Title:    f.text("title", 1, 255),
		Options:  f.texts("options", 2, 12, 1, 100),
		Multiple: f.boolean("is_multiple_answer", false),
	}
	seen := map[string]bool{}
	for i, option := range poll.Options {
		if option != "" && seen[option] {
			f.fail(fmt.Sprintf("options.%d", i), "must differ from the other options.")
		}
		seen[option] = true
	}
	return part{content: poll, replyTo: f.replyTo(), form: f}
}

// file reads the object that names a file to send.
func (f form) file() part {
	inside, given := f.object("file", false)
	if !given {
		if !f.has("file") {
			inside.fail("url", "is required: the http or https address of the file to send.")
		}
		return part{replyTo: f.replyTo(), form: f}
	}
	p := f.fetched("file.url", inside.address("url"))
	p.source.Filename = inside.optionalText("filename", 0, 255)
	p.source.MIME = inside.optionalText("mimeType", 0, 255)
	if kind := p.source.MIME; kind != "" {
		if name, _, err := mime.ParseMediaType(kind); err != nil || !strings.Contains(name, "/") {
			inside.fail("mimeType", "must be a media type, for example image/jpeg.")
		}
	}
	return p
}

func (f form) fetched(name, url string) part {
	return part{source: &media.Source{URL: url}, field: f.path + name, replyTo: f.replyTo(), form: f}
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
		p.form.fail("reply_to", "names no message of this channel.")
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
			r.note(parts[i].field, e.Sentence)
		} else if err != nil {
			s.discard(drafts)
			return nil, err
		}
	}
	if err := r.err(); err != nil {
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
	if q := s.mediaLeft(token); q.refuses {
		return over(q, fmt.Sprintf("More than %s of files were fetched for this token within a minute. Try again after the time in Retry-After.", safehttp.Size(q.most)))
	}
	return nil
}

var errManyFetches = over(quota{name: limitFetches, unit: unitAtOnce, most: maxFetches, wait: fetchPatience},
	fmt.Sprintf("This token has %d files fetched at once, the most that it may. Try again when one is done.", maxFetches))

// mediaLeft is how many bytes may be fetched for a token now.
func (s *server) mediaLeft(token parley.TokenID) quota {
	if s.fetched == nil {
		return quota{}
	}
	q := s.fetched.look(token, time.Now())
	q.name, q.unit = limitFetches, unitBytes
	return q
}

// fetch fetches what a part points at, in its turn among all that is fetched for the token, and counts it for
// that. A text goes without a preview rather than wait, or not at all.
func (s *server) fetch(ctx context.Context, token parley.TokenID, p part) (parley.Content, error) {
	patience := fetchPatience
	if p.source == nil {
		patience = 0
	}
	if !s.fetches.take(token, ctx.Done(), patience) {
		if p.source == nil {
			return p.content, nil
		}
		return p.content, errManyFetches
	}
	defer s.fetches.give(token)
	count := func(n int) {
		if s.fetched != nil {
			s.fetched.add(token, int64(n), time.Now())
		}
	}
	if p.source != nil {
		p.source.OnRead = count
	}
	switch c := p.content.(type) {
	case parley.Text:
		if !s.mediaLeft(token).refuses {
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
