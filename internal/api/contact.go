package api

import (
	"context"

	"parley"
)

// contactRow is one contact of the list.
type contactRow struct {
	ID         parley.ContactID `json:"id"`
	Name       string           `json:"name"`
	Number     string           `json:"number"`
	IsBusiness bool             `json:"is_business"`
	IsBlocked  bool             `json:"is_blocked"`
	LastSeenAt *string          `json:"last_seen_at"`
}

// contactDetail is everything that is known of one contact.
type contactDetail struct {
	contactRow `json:",inline"`
	About      string  `json:"about"`
	PictureURL *string `json:"picture_url"`
	OnNetwork  bool    `json:"on_network"`
}

func rowOf(c parley.Contact) contactRow {
	return contactRow{
		ID: c.ID, Name: c.Name, Number: c.ID.Number(),
		IsBusiness: c.IsBusiness, IsBlocked: c.IsBlocked, LastSeenAt: stampOrNil(c.LastSeenAt),
	}
}

func (s *server) contacts(ctx context.Context, r *request) (envelope[[]contactRow], error) {
	page := r.Page()
	if err := r.Err(); err != nil {
		return envelope[[]contactRow]{}, err
	}
	session, err := s.Gateway.Session(r.channel.Code)
	if err != nil {
		return envelope[[]contactRow]{}, err
	}
	contacts, total, err := session.Contacts(ctx, page)
	if err != nil {
		return envelope[[]contactRow]{}, err
	}
	rows := make([]contactRow, len(contacts))
	for i, c := range contacts {
		rows[i] = rowOf(c)
	}
	return okList("OK", rows, page, total), nil
}

// askContact asks the network about the contact that the request names.
func (s *server) askContact(ctx context.Context, r *request) (parley.Contact, error) {
	id := r.Contact("contact_id")
	if err := r.Err(); err != nil {
		return parley.Contact{}, err
	}
	session, err := s.Gateway.Session(r.channel.Code)
	if err != nil {
		return parley.Contact{}, err
	}
	own, err := s.ownSpelling(ctx, r.channel.Code, id)
	if err != nil {
		return parley.Contact{}, err
	}
	c, err := session.Contact(ctx, own)
	c.ID = id
	return c, err
}

// ownSpelling returns the network's own spelling of a contact's number, as far as it is known.
func (s *server) ownSpelling(ctx context.Context, channel parley.ChannelCode, asked parley.ContactID) (parley.ContactID, error) {
	spellings, err := s.Store.Spellings(ctx, channel, asked)
	if err != nil {
		return "", err
	}
	return spellings[0], nil
}

func (s *server) contactInfo(ctx context.Context, r *request) (envelope[contactDetail], error) {
	c, err := s.askContact(ctx, r)
	detail := contactDetail{contactRow: rowOf(c), About: c.About, PictureURL: textOrNil(c.PictureURL), OnNetwork: c.OnNetwork}
	return ok("OK", detail), err
}

type pictureData struct {
	PictureURL *string `json:"picture_url"`
}

func (s *server) picture(ctx context.Context, r *request) (envelope[pictureData], error) {
	c, err := s.askContact(ctx, r)
	return ok("OK", pictureData{textOrNil(c.PictureURL)}), err
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

// checkNumber asks whether a phone number, in any spelling, is on the network.
func (s *server) checkNumber(ctx context.Context, r *request) (envelope[numberData], error) {
	var digits string
	if spelling := r.Text("phone", 1, 100); spelling != "" {
		digits = r.CheckSpelling("phone", spelling)
	}
	if err := r.Err(); err != nil {
		return envelope[numberData]{}, err
	}
	session, err := s.Gateway.Session(r.channel.Code)
	if err != nil {
		return envelope[numberData]{}, err
	}
	id, exists, err := session.CheckNumber(ctx, digits)
	data := numberData{IsExists: exists}
	if exists {
		data.ContactID = textOrNil(id)
	}
	return ok("OK", data), err
}
