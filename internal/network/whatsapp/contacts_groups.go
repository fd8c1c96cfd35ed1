package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
)

// query asks something on the current connection.
func query[T any](ctx context.Context, s *session, ask func(context.Context, *connection) (T, error)) (answer T, err error) {
	defer s.recoverPanic(&err)
	conn, err := s.connected()
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return ask(ctx, conn)
}

func (s *session) Contacts(ctx context.Context, page parley.Page) ([]parley.Contact, int64, error) {
	var total int64
	all, err := query(ctx, s, func(ctx context.Context, conn *connection) (_ []parley.Contact, err error) {
		var listed []keystore.ListedContact
		if listed, total, err = s.d.keys.ListContacts(ctx, conn.jid, page.Limit, max(page.Offset, 0)); err != nil {
			return nil, err
		}
		all := make([]parley.Contact, len(listed))
		for i, c := range listed {
			all[i] = parley.Contact{ID: parley.NewContactID(c.Number), Name: c.Name, IsBusiness: c.Business, OnNetwork: true}
			if all[i].IsBlocked, err = conn.isBlocked(ctx, all[i].ID); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
	return all, total, err
}

// contactName prefers the owner's name for a contact, then the business name, then the contact's own.
func contactName(c types.ContactInfo) string {
	return cmp.Or(c.FullName, c.FirstName, c.BusinessName, c.PushName)
}

// blocklist caches blocked contacts. The network sends a notification when the list changes.
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

// put stores the list, unless it changed since the query started.
func (b *blocklist) put(known map[types.JID]bool, changes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changes == changes {
		b.known = known
	}
}

// isBlocked reports whether the account blocks a contact. The network names most by LID: a contact whose LID we never learned
// does not count as blocked.
func (conn *connection) isBlocked(ctx context.Context, c parley.ContactID) (bool, error) {
	known, changes := conn.blocked.get()
	if known == nil {
		list, err := conn.client.GetBlocklist(ctx)
		if err != nil {
			return false, conn.queryError("read who is blocked", err)
		}
		known = map[types.JID]bool{}
		for _, jid := range list.JIDs {
			known[jid.ToNonAD()] = true
		}
		conn.blocked.put(known, changes)
	}
	if len(known) == 0 {
		return false, nil
	}
	lid, hidden := hiddenLID(c)
	if !hidden {
		var err error
		if lid, err = conn.client.Store.LIDs.GetLIDForPN(ctx, phoneJID(c)); err != nil {
			return false, fmt.Errorf("look up a number: %w", err)
		}
	}
	return known[phoneJID(c)] || known[lid.ToNonAD()], nil
}

func (s *session) SetBlocked(ctx context.Context, id parley.ContactID, blocked bool) error {
	_, err := query(ctx, s, func(ctx context.Context, conn *connection) (struct{}, error) {
		jid, err := conn.findAddress(ctx, id)
		if err != nil {
			return struct{}{}, conn.classifyUnsent(err)
		}
		action := events.BlocklistChangeActionUnblock
		if blocked {
			action = events.BlocklistChangeActionBlock
		}
		if _, err = conn.client.UpdateBlocklist(ctx, jid, action); err != nil {
			return struct{}{}, conn.queryError("change who is blocked", err)
		}
		conn.blocked.changed()
		return struct{}{}, nil
	})
	return err
}

func (s *session) Contact(ctx context.Context, id parley.ContactID) (parley.Contact, error) {
	return query(ctx, s, func(ctx context.Context, conn *connection) (parley.Contact, error) {
		c := parley.Contact{ID: id}
		lid, err := conn.findAddress(ctx, id)
		if errors.Is(err, errAbsent) || errors.Is(err, network.ErrImpossibleNumber) {
			return c, nil
		}
		if err != nil {
			return c, conn.classifyUnsent(err)
		}
		c.OnNetwork = true
		id = s.networkSpelling(id)
		if c.Name, c.IsBusiness, err = conn.storedName(ctx, id, lid); err != nil {
			return c, err
		}
		info, err := conn.client.GetUserInfo(ctx, []types.JID{lid})
		if err != nil {
			return c, conn.queryError("read about a contact", err)
		}
		c.About = info[lid].Status
		if c.PictureURL, err = conn.pictureURL(ctx, lid); err != nil {
			return c, err
		}
		timer, err := conn.timer(ctx, lid)
		if err != nil {
			return c, err
		}
		c.Timer = int(timer.Seconds)
		c.IsBlocked, err = conn.isBlocked(ctx, id)
		return c, err
	})
}

// storedName is the name of a contact, under whichever address it was noted.
func (conn *connection) storedName(ctx context.Context, id parley.ContactID, lid types.JID) (name string, business bool, err error) {
	for _, jid := range []types.JID{phoneJID(id), lid} {
		if jid.IsEmpty() {
			continue
		}
		info, err := conn.contacts.GetContact(ctx, jid)
		if err != nil {
			return "", false, fmt.Errorf("read a contact: %w", err)
		}
		name, business = cmp.Or(name, contactName(info)), business || info.BusinessName != ""
	}
	return name, business, nil
}

// pictureURL returns "" if the contact has no picture or does not show it to this account.
func (conn *connection) pictureURL(ctx context.Context, lid types.JID) (string, error) {
	info, err := conn.client.GetProfilePictureInfo(ctx, lid, nil)
	switch {
	case errors.Is(err, whatsmeow.ErrProfilePictureNotSet), errors.Is(err, whatsmeow.ErrProfilePictureUnauthorized):
		return "", nil
	case err != nil:
		return "", conn.queryError("read a picture", err)
	case info == nil:
		return "", nil
	}
	return info.URL, nil
}

func (s *session) CheckNumber(ctx context.Context, number string) (id parley.ContactID, exists bool, err error) {
	exists, err = query(ctx, s, func(ctx context.Context, conn *connection) (bool, error) {
		plain := parseNumber(number)
		if plain == "" {
			return false, nil
		}
		id = parley.NewContactID(plain)
		return conn.lookUpNumber(ctx, id)
	})
	return id, exists, err
}

func (s *session) Groups(ctx context.Context, page parley.Page) ([]parley.Group, int64, error) {
	all, err := query(ctx, s, func(ctx context.Context, conn *connection) ([]parley.Group, error) {
		joined, err := conn.client.GetJoinedGroups(ctx)
		if err != nil {
			return nil, conn.queryError("list groups", err)
		}
		all := make([]parley.Group, len(joined))
		for i, g := range joined {
			if all[i], err = conn.toGroup(ctx, g); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
	slices.SortFunc(all, func(a, b parley.Group) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	from := min(max(page.Offset, 0), int64(len(all)))
	to := min(from+int64(max(page.Limit, 0)), int64(len(all)))
	return all[from:to], int64(len(all)), err
}

func (conn *connection) toGroup(ctx context.Context, g *types.GroupInfo) (parley.Group, error) {
	owner, _, err := conn.contactFor(ctx, g.OwnerJID, g.OwnerPN)
	if err != nil {
		return parley.Group{}, err
	}
	return parley.Group{
		ID: parley.GroupID(g.JID.String()), Name: g.Name, CreatedAt: g.GroupCreated, Owner: owner,
		Restricted: g.IsLocked, IsCommunity: g.IsParent, IsOwner: conn.isOwn(g.OwnerJID) || conn.isOwn(g.OwnerPN),
		OnlyAdminsSend: g.IsAnnounce, Description: stripNUL(g.Topic), JoinApproval: g.IsJoinApprovalRequired,
		CanAddMember:     conn.isAdmin(g) || g.MemberAddMode == types.GroupMemberAddModeAllMember,
		ParticipantCount: max(g.ParticipantCount, len(g.Participants)), Timer: int(g.DisappearingTimer),
	}, nil
}

func (conn *connection) isOwn(jid types.JID) bool {
	return jid.User != "" && (jid.User == conn.jid.User && jid.Server == types.DefaultUserServer || jid.User == conn.lid.User &&
		jid.Server == types.HiddenUserServer)
}

// CreateGroup creates a group. All contacts must be on the network.
func (s *session) CreateGroup(ctx context.Context, name string, participants []parley.ContactID) (parley.Group, error) {
	return query(ctx, s, func(ctx context.Context, conn *connection) (parley.Group, error) {
		request := whatsmeow.ReqCreateGroup{Name: name}
		for _, p := range participants {
			jid, err := conn.findAddress(ctx, p)
			if err != nil {
				return parley.Group{}, conn.classifyUnsent(err)
			}
			request.Participants = append(request.Participants, jid)
		}
		made, err := conn.client.CreateGroup(ctx, request)
		if err != nil {
			if err = conn.queryError("make a group", err); network.ToClass(err) == network.Disconnected {
				err = network.OutcomeUnknown(err) // the network may have created it
			}
			return parley.Group{}, err
		}
		g, err := conn.toGroup(ctx, made)
		if err != nil {
			err = network.OutcomeUnknown(err) // it is there
		}
		return g, err
	})
}

func (s *session) Participants(ctx context.Context, id parley.GroupID) ([]parley.Participant, error) {
	return query(ctx, s, func(ctx context.Context, conn *connection) ([]parley.Participant, error) {
		jid, ok := groupJID(id)
		if !ok {
			return nil, parley.ErrNotFound
		}
		g, err := conn.client.GetGroupInfo(ctx, jid)
		if err != nil {
			return nil, conn.groupError("read a group", err)
		}
		all, ids := make([]parley.Participant, len(g.Participants)), make([]parley.ContactID, len(g.Participants))
		for i, p := range g.Participants {
			all[i] = parley.Participant{IsAdmin: p.IsAdmin, IsOwner: p.IsSuperAdmin}
			if all[i].ID, _, err = conn.contactFor(ctx, p.PhoneNumber, p.LID); err != nil {
				return nil, err
			}
			ids[i] = all[i].ID
			name, _, err := conn.storedName(ctx, all[i].ID, p.LID)
			if err != nil {
				return nil, err
			}
			all[i].Name = cmp.Or(name, p.DisplayName)
		}
		return all, conn.storeMet(ctx, ids...)
	})
}

// groupError classes an error of a request about one group.
func (conn *connection) groupError(what string, err error) error {
	switch {
	case errors.Is(err, whatsmeow.ErrGroupNotFound), errors.Is(err, whatsmeow.ErrNotInGroup), errors.Is(err, whatsmeow.ErrIQNotFound):
		return parley.ErrNotFound
	case errors.Is(err, whatsmeow.ErrGroupInviteLinkUnauthorized), errors.Is(err, whatsmeow.ErrIQForbidden),
		errors.Is(err, whatsmeow.ErrIQNotAuthorized):
		return network.Refuse(parley.Refused, "This account is not an admin of the group.")
	}
	return conn.queryError(what, err)
}

func (s *session) UpdateParticipants(ctx context.Context, id parley.GroupID, add bool, members []parley.ContactID) ([]error, error) {
	action := whatsmeow.ParticipantChangeRemove
	if add {
		action = whatsmeow.ParticipantChangeAdd
	}
	return s.updateMembers(ctx, id, members, nil, func(ctx context.Context, c *whatsmeow.Client, group types.JID, jids []types.JID) (
		[]types.GroupParticipant, error) {
		return c.UpdateGroupParticipants(ctx, group, jids, action)
	})
}

// updateMembers changes something about people in a group. absent is the error for those who are not in it.
func (s *session) updateMembers(ctx context.Context, id parley.GroupID, members []parley.ContactID, absent error,
	update func(ctx context.Context, c *whatsmeow.Client, group types.JID, jids []types.JID) ([]types.GroupParticipant, error),
) ([]error, error) {
	return query(ctx, s, func(ctx context.Context, conn *connection) ([]error, error) {
		group, ok := groupJID(id)
		if !ok {
			return nil, parley.ErrNotFound
		}
		errs := make([]error, len(members))
		index := map[types.JID]int{}
		var jids []types.JID
		for i, member := range members {
			jid, err := conn.findAddress(ctx, member)
			if refused, ok := errors.AsType[*network.Error](err); ok && refused.Class == network.Permanent {
				errs[i] = refused
				continue
			}
			if err != nil {
				return nil, conn.classifyUnsent(err)
			}
			index[jid], index[phoneJID(member)] = i, i // the network may name it by either
			jids = append(jids, jid)
		}
		if len(jids) == 0 {
			return errs, nil
		}
		changed, err := update(ctx, conn.client, group, jids)
		if err != nil {
			return nil, conn.adminError(ctx, group, "change the members of a group", err)
		}
		for _, p := range changed {
			for _, jid := range []types.JID{p.LID, p.JID, p.PhoneNumber} {
				if i, known := index[jid]; known {
					errs[i] = memberError(p.Error, absent)
					break
				}
			}
		}
		return errs, nil
	})
}

// adminError is groupError for what only admins may do: the network may refuse it also because the account is not in the group.
func (conn *connection) adminError(ctx context.Context, group types.JID, what string, err error) error {
	if errors.Is(err, whatsmeow.ErrIQForbidden) {
		if _, infoErr := conn.client.GetGroupInfo(ctx, group); infoErr != nil {
			err = infoErr
		}
	}
	return conn.groupError(what, err)
}

// memberError explains why one member was not changed.
func memberError(code int, absent error) error {
	switch code {
	case 0, http.StatusOK, http.StatusConflict: // a member already
		return nil
	case http.StatusNotFound: // not a member
		return absent
	case http.StatusForbidden:
		return network.Refuse(parley.Refused, "This contact does not let this account add it to groups. Send an invite link instead.")
	}
	return network.Refuse(parley.Refused, fmt.Sprintf("WhatsApp did not change this member (error %d).", code))
}

func (s *session) LeaveGroup(ctx context.Context, id parley.GroupID) error {
	_, err := query(ctx, s, func(ctx context.Context, conn *connection) (struct{}, error) {
		group, ok := groupJID(id)
		if !ok {
			return struct{}{}, parley.ErrNotFound
		}
		if _, err := conn.client.GetGroupInfo(ctx, group); err != nil { // leaving an unknown group is no error of the network
			return struct{}{}, conn.groupError("read a group", err)
		}
		if err := conn.client.LeaveGroup(ctx, group); err != nil {
			return struct{}{}, conn.groupError("leave a group", err)
		}
		return struct{}{}, nil
	})
	return err
}

func (s *session) InviteLink(ctx context.Context, id parley.GroupID) (string, error) {
	return query(ctx, s, func(ctx context.Context, conn *connection) (string, error) {
		group, ok := groupJID(id)
		if !ok {
			return "", parley.ErrNotFound
		}
		link, err := conn.client.GetGroupInviteLink(ctx, group, false)
		if err != nil {
			return "", conn.groupError("read the invite link of a group", err)
		}
		return link, nil
	})
}

var (
	_ network.Driver  = (*Driver)(nil)
	_ network.Witness = (*Driver)(nil)
)
