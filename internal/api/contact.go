package api

import (
	"context"
	"slices"
	"strings"

	"parley"
	"parley/internal/network"
	"parley/internal/wire"
)

// contactRow has the contact's id under two names: clients of this API use both. So has contactDetail the picture.
type contactRow struct {
	ID         parley.ContactID `json:"id"`
	ContactID  parley.ContactID `json:"contact_id"`
	Name       string           `json:"name"`
	Number     *string          `json:"number"` // null: it is hidden
	Username   *string          `json:"username"`
	IsBusiness bool             `json:"is_business"`
	IsBlocked  bool             `json:"is_blocked"`
	LastSeenAt *string          `json:"last_seen_at"`
}

type contactDetail struct {
	contactRow `json:",inline"`
	About      string  `json:"about"`
	PictureURL *string `json:"picture_url"`
	ProfileURL *string `json:"profile_picture_url"`
	OnNetwork  bool    `json:"on_network"`
	Timer      int     `json:"disappearing_seconds"`

	WindowUntil *wire.Time `json:"window_until,omitempty"` // as in [wire.Chat]
}

func toContactRow(c parley.Contact) contactRow {
	row := contactRow{
		ID: c.ID, ContactID: c.ID, Name: c.Name, Username: textOrNil(c.Username),
		IsBusiness: c.IsBusiness, IsBlocked: c.IsBlocked, LastSeenAt: stampOrNil(c.LastSeenAt),
	}
	if !c.ID.IsHidden() {
		row.Number = new(c.ID.Number())
	}
	return row
}

func (s *server) contacts(ctx context.Context, r *request) (any, error) {
	page, search := r.Page(), r.OptionalText("search", 1, maxSought)
	directory, err := s.directory(r)
	if err != nil {
		return nil, err
	}
	contacts, total, err := searched(page, search, func(page parley.Page) ([]parley.Contact, int64, error) {
		return directory.Contacts(ctx, page)
	}, func(c parley.Contact) (name, number string) { return c.Name, c.ID.Number() })
	return okPage(mapped(contacts, toContactRow), page, total), err
}

// mostSearched is how many contacts or groups of a channel are searched.
const mostSearched = 10_000

// searched reads a page of a list. With a text it reads only those whose name contains it, or whose number fits it as people write
// numbers: no network has an index of names.
func searched[T any](page parley.Page, text string, read func(parley.Page) ([]T, int64, error),
	about func(T) (name, number string)) ([]T, int64, error) {
	if text == "" {
		return read(page)
	}
	all, _, err := read(parley.Page{Limit: mostSearched})
	start, end := numberPart(text)
	text = strings.ToLower(text)
	found := slices.DeleteFunc(all, func(one T) bool {
		name, number := about(one)
		return !strings.Contains(strings.ToLower(name), text) && (start == "" || !strings.HasPrefix(number, start)) &&
			(end == "" || !strings.HasSuffix(number, end))
	})
	total := int64(len(found))
	from := min(page.Offset, total)
	return found[from:min(from+int64(page.Limit), total)], total, err
}

// directory returns the session of the channel, or an error if a field is wrong.
func (s *server) directory(r *request) (network.Directory, error) {
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s.config.Gateway.Directory(r.channel.Code)
}

func (s *server) askContact(ctx context.Context, r *request) (parley.Contact, error) {
	id := r.Contact("contact_id")
	directory, err := s.directory(r)
	if err != nil {
		return parley.Contact{}, err
	}
	own, err := s.ownSpelling(ctx, r.channel.Code, id)
	if err != nil {
		return parley.Contact{}, err
	}
	c, err := directory.Contact(ctx, own)
	if c.ID = id; id.IsHidden() { // the number may be known by now
		c.ID = own
	}
	return c, err
}

// ownSpelling returns the network's spelling of a contact's number, if it is known.
func (s *server) ownSpelling(ctx context.Context, channel parley.ChannelCode, asked parley.ContactID) (parley.ContactID, error) {
	spellings, err := s.config.Store.Spellings(ctx, channel, asked)
	if err != nil {
		return "", err
	}
	return spellings[0], nil
}

func (s *server) contactInfo(ctx context.Context, r *request) (any, error) {
	c, err := s.askContact(ctx, r)
	if err != nil {
		return nil, err
	}
	picture := textOrNil(c.PictureURL)
	detail := contactDetail{contactRow: toContactRow(c), About: c.About, PictureURL: picture, ProfileURL: picture, OnNetwork: c.OnNetwork,
		Timer: c.Timer}
	own, err := s.ownSpelling(ctx, r.channel.Code, c.ID)
	if err != nil {
		return nil, err
	}
	ends, err := s.config.Gateway.WindowEnds(ctx, r.channel, own)
	detail.WindowUntil = windowUntil(ends, own)
	return ok("OK", detail), err
}

type blockData struct {
	ContactID parley.ContactID `json:"contact_id"`
	Blocked   bool             `json:"blocked"`
}

func (s *server) blockContact(ctx context.Context, r *request) (any, error) {
	data := blockData{r.Contact("contact_id"), r.Bool("blocked", false)}
	if !r.Has("blocked") {
		r.Fail("blocked", "is required: true or false.")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	blocker, err := s.config.Gateway.Blocker(r.channel.Code)
	if err != nil {
		return nil, err
	}
	own, err := s.ownSpelling(ctx, r.channel.Code, data.ContactID)
	if err != nil {
		return nil, err
	}
	err = blocker.SetBlocked(context.WithoutCancel(ctx), own, data.Blocked)
	return ok(map[bool]string{true: "Contact blocked", false: "Contact unblocked"}[data.Blocked], data), err
}

type pictureData struct {
	PictureURL *string `json:"picture_url"`
	ProfileURL *string `json:"profile_picture_url"`
}

func (s *server) picture(ctx context.Context, r *request) (any, error) {
	c, err := s.askContact(ctx, r)
	picture := textOrNil(c.PictureURL)
	return ok("OK", pictureData{picture, picture}), err
}

func textOrNil[S ~string](s S) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}

type numberData struct {
	IsExists  bool    `json:"is_exists"`
	ContactID *string `json:"contact_id"`
}

func (s *server) checkNumber(ctx context.Context, r *request) (any, error) {
	var digits string
	if spelling := r.Text("phone", 1, 100); spelling != "" {
		digits = r.CheckSpelling("phone", spelling)
	}
	directory, err := s.directory(r)
	if err != nil {
		return nil, err
	}
	id, exists, err := directory.CheckNumber(ctx, digits)
	data := numberData{IsExists: exists}
	if exists {
		data.ContactID = textOrNil(id)
	}
	return ok("OK", data), err
}
