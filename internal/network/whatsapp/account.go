package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
)

// Contacts lists those whom the account knows by name.
func (s *session) Contacts(ctx context.Context, page parley.Page) (_ []parley.Contact, _ int64, err error) {
	defer s.contain(&err)
	l, err := s.live()
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	page.Offset = max(page.Offset, 0)
	listed, total, err := l.contacts.(keystore.ContactList).ListContacts(ctx, page.Limit, page.Offset)
	if err != nil {
		return nil, 0, err
	}
	all := make([]parley.Contact, 0, len(listed))
	for _, c := range listed {
		id := parley.ContactOf(c.Number)
		blocked, err := l.blocks(ctx, id)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, parley.Contact{ID: id, Name: c.Name, IsBusiness: c.Business, IsBlocked: blocked, OnNetwork: true})
	}
	return all, total, nil
}

// nameIn is the best name of a contact: the owner's, then a business's, then the person's own.
func nameIn(c types.ContactInfo) string {
	return cmp.Or(c.FullName, c.FirstName, c.BusinessName, c.PushName)
}

// window cuts a page out of a list.
func window[E any](all []E, page parley.Page) []E {
	from := min(max(page.Offset, 0), int64(len(all)))
	to := min(from+int64(max(page.Limit, 0)), int64(len(all)))
	return all[from:to]
}

// blocklist caches whom the account blocks. The network notifies of changes.
type blocklist struct {
	mu      sync.Mutex
	known   map[types.JID]bool // nil: to be read
	changes int
}

// changed has the list read again.
func (b *blocklist) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = nil
	b.changes++
}

func (b *blocklist) get() (known map[types.JID]bool, changes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known, b.changes
}

// put stores the list, unless it changed since it was asked for.
func (b *blocklist) put(known map[types.JID]bool, changes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changes == changes {
		b.known = known
	}
}

// blocks reports whether the account blocks a contact. The network names most by LID: a contact whose LID we never learned
// does not count as blocked.
func (l *line) blocks(ctx context.Context, c parley.ContactID) (bool, error) {
	known, changes := l.blocked.get()
	if known == nil {
		list, err := l.client.GetBlocklist(ctx)
		if err != nil {
			return false, l.asked("read who is blocked", err)
		}
		known = map[types.JID]bool{}
		for _, jid := range list.JIDs {
			known[jid.ToNonAD()] = true
		}
		l.blocked.put(known, changes)
	}
	if len(known) == 0 {
		return false, nil
	}
	lid, err := l.client.Store.LIDs.GetLIDForPN(ctx, phoneJID(c))
	if err != nil {
		return false, fmt.Errorf("look up a number: %w", err)
	}
	return known[phoneJID(c)] || known[lid.ToNonAD()], nil
}

// Contact tells all that is known of one contact.
func (s *session) Contact(ctx context.Context, id parley.ContactID) (_ parley.Contact, err error) {
	defer s.contain(&err)
	l, err := s.live()
	if err != nil {
		return parley.Contact{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c := parley.Contact{ID: id}
	lid, err := l.address(ctx, id)
	if errors.Is(err, errAbsent) || errors.Is(err, network.ErrImpossibleNumber) {
		return c, nil
	}
	if err != nil {
		return c, l.before(err)
	}
	c.OnNetwork = true
	id = l.s.aliases.of(id)
	if c.Name, c.IsBusiness, err = l.known(ctx, id, lid); err != nil {
		return c, err
	}
	info, err := l.client.GetUserInfo(ctx, []types.JID{lid})
	if err != nil {
		return c, l.asked("read about a contact", err)
	}
	c.About = info[lid].Status
	if c.PictureURL, err = l.picture(ctx, lid); err != nil {
		return c, err
	}
	c.IsBlocked, err = l.blocks(ctx, id)
	return c, err
}

// known is the name of a contact, under whichever address it was noted.
func (l *line) known(ctx context.Context, id parley.ContactID, lid types.JID) (name string, business bool, err error) {
	for _, jid := range []types.JID{phoneJID(id), lid} {
		if jid.IsEmpty() {
			continue
		}
		info, err := l.contacts.GetContact(ctx, jid)
		if err != nil {
			return "", false, fmt.Errorf("read a contact: %w", err)
		}
		name, business = cmp.Or(name, nameIn(info)), business || info.BusinessName != ""
	}
	return name, business, nil
}

// picture is the address of a contact's picture; empty where there is none, or none for us.
func (l *line) picture(ctx context.Context, lid types.JID) (string, error) {
	info, err := l.client.GetProfilePictureInfo(ctx, lid, nil)
	switch {
	case errors.Is(err, whatsmeow.ErrProfilePictureNotSet), errors.Is(err, whatsmeow.ErrProfilePictureUnauthorized):
		return "", nil
	case err != nil:
		return "", l.asked("read a picture", err)
	case info == nil:
		return "", nil
	}
	return info.URL, nil
}

// CheckNumber asks whether a phone number is on the network.
func (s *session) CheckNumber(ctx context.Context, number string) (_ parley.ContactID, _ bool, err error) {
	defer s.contain(&err)
	l, err := s.live()
	if err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	plain := digits(number)
	if plain == "" {
		return "", false, nil
	}
	id := parley.ContactOf(plain)
	found, err := l.look(ctx, id)
	return id, found, err
}

// Groups lists the groups that the account is in.
func (s *session) Groups(ctx context.Context, page parley.Page) (_ []parley.Group, _ int64, err error) {
	defer s.contain(&err)
	l, err := s.live()
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	joined, err := l.client.GetJoinedGroups(ctx)
	if err != nil {
		return nil, 0, l.asked("list groups", err)
	}
	all := make([]parley.Group, 0, len(joined))
	for _, g := range joined {
		group, err := l.group(ctx, g)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, group)
	}
	slices.SortFunc(all, func(a, b parley.Group) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return window(all, page), int64(len(all)), nil
}

// group describes a group in our words.
func (l *line) group(ctx context.Context, g *types.GroupInfo) (parley.Group, error) {
	owner, _, err := l.person(ctx, g.OwnerJID, g.OwnerPN)
	if err != nil {
		return parley.Group{}, err
	}
	admin := slices.ContainsFunc(g.Participants, func(p types.GroupParticipant) bool { return p.IsAdmin && l.isOwn(p.JID) })
	return parley.Group{
		ID: parley.GroupID(g.JID.String()), Name: g.Name, CreatedAt: g.GroupCreated, Owner: owner,
		Restricted: g.IsLocked, IsCommunity: g.IsParent, IsOwner: l.isOwn(g.OwnerJID) || l.isOwn(g.OwnerPN),
		JoinApproval: g.IsJoinApprovalRequired, CanAddMember: admin || g.MemberAddMode == types.GroupMemberAddModeAllMember,
		ParticipantCount: max(g.ParticipantCount, len(g.Participants)),
	}, nil
}

// isOwn reports whether an address is the account's own.
func (l *line) isOwn(jid types.JID) bool {
	return jid.User != "" && (jid.User == l.jid.User && jid.Server == types.DefaultUserServer || jid.User == l.lid.User && jid.Server == types.HiddenUserServer)
}

// CreateGroup makes a group of contacts who are all on the network.
func (s *session) CreateGroup(ctx context.Context, name string, participants []parley.ContactID) (_ parley.Group, err error) {
	defer s.contain(&err)
	l, err := s.live()
	if err != nil {
		return parley.Group{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request := whatsmeow.ReqCreateGroup{Name: name}
	for _, p := range participants {
		jid, err := l.address(ctx, p)
		if err != nil {
			return parley.Group{}, l.before(err)
		}
		request.Participants = append(request.Participants, jid)
	}
	made, err := l.client.CreateGroup(ctx, request)
	if err != nil {
		if err = l.asked("make a group", err); network.ClassOf(err) == network.Disconnected {
			err = network.OutcomeUnknown(err) // it was asked for: the network may have made it
		}
		return parley.Group{}, err
	}
	g, err := l.group(ctx, made)
	if err != nil {
		err = network.OutcomeUnknown(err) // it is there
	}
	return g, err
}

// Participants lists a group's members.
func (s *session) Participants(ctx context.Context, id parley.GroupID) (_ []parley.Participant, err error) {
	defer s.contain(&err)
	l, err := s.live()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	jid, ok := groupJID(id)
	if !ok {
		return nil, parley.ErrNotFound
	}
	g, err := l.client.GetGroupInfo(ctx, jid)
	if errors.Is(err, whatsmeow.ErrGroupNotFound) || errors.Is(err, whatsmeow.ErrNotInGroup) {
		return nil, parley.ErrNotFound
	}
	if err != nil {
		return nil, l.asked("read a group", err)
	}
	var all []parley.Participant
	for _, p := range g.Participants {
		contact, _, err := l.person(ctx, p.PhoneNumber, p.LID)
		if err != nil {
			return nil, err
		}
		name, _, err := l.known(ctx, contact, p.LID)
		if err != nil {
			return nil, err
		}
		all = append(all, parley.Participant{ID: contact, Name: cmp.Or(name, p.DisplayName), IsAdmin: p.IsAdmin, IsOwner: p.IsSuperAdmin})
	}
	return all, nil
}

var (
	_ network.Driver  = (*Driver)(nil)
	_ network.Witness = (*Driver)(nil)
)
