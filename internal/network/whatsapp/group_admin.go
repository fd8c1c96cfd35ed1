package whatsapp

import (
	"context"
	"errors"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

var _ network.GroupAdmin = (*session)(nil)

func (s *session) SetAdmins(ctx context.Context, id parley.GroupID, admin bool, members []parley.ContactID) ([]error, error) {
	action := whatsmeow.ParticipantChangeDemote
	if admin {
		action = whatsmeow.ParticipantChangePromote
	}
	return s.updateMembers(ctx, id, members, network.Refuse(parley.Refused, "This contact is not in the group."),
		func(ctx context.Context, c *whatsmeow.Client, group types.JID, jids []types.JID) ([]types.GroupParticipant, error) {
			return c.UpdateGroupParticipants(ctx, group, jids, action)
		})
}

func (s *session) AnswerRequests(ctx context.Context, id parley.GroupID, approve bool, members []parley.ContactID) ([]error, error) {
	action := whatsmeow.ParticipantChangeReject
	if approve {
		action = whatsmeow.ParticipantChangeApprove
	}
	return s.updateMembers(ctx, id, members, network.Refuse(parley.Refused, "This contact has not asked to join."),
		func(ctx context.Context, c *whatsmeow.Client, group types.JID, jids []types.JID) ([]types.GroupParticipant, error) {
			return c.UpdateGroupRequestParticipants(ctx, group, jids, action)
		})
}

func (s *session) ChangeGroup(ctx context.Context, id parley.GroupID, change parley.GroupPatch) error {
	_, err := query(ctx, s, func(ctx context.Context, conn *connection) (struct{}, error) {
		group, ok := groupJID(id)
		if !ok {
			return struct{}{}, parley.ErrNotFound
		}
		defer s.groups.invalidate(group)
		if err := conn.changeGroup(ctx, group, change); err != nil {
			return struct{}{}, conn.adminError(ctx, group, "change a group", err)
		}
		return struct{}{}, nil
	})
	return err
}

func (conn *connection) changeGroup(ctx context.Context, group types.JID, change parley.GroupPatch) error {
	if change.Name != nil {
		if err := conn.client.SetGroupName(ctx, group, *change.Name); err != nil {
			return err
		}
	}
	if change.Description != nil {
		before, err := conn.client.GetGroupInfo(ctx, group)
		if err == nil {
			err = conn.client.SetGroupTopic(ctx, group, before.TopicID, "", *change.Description)
		}
		if err != nil {
			return err
		}
	}
	if change.Picture != nil {
		if _, err := conn.client.SetGroupPhoto(ctx, group, *change.Picture); err != nil {
			return err
		}
	}
	for _, flag := range []struct {
		value *bool
		set   func(context.Context, types.JID, bool) error
	}{
		{change.OnlyAdminsEdit, conn.client.SetGroupLocked},
		{change.OnlyAdminsSend, conn.client.SetGroupAnnounce},
		{change.JoinApproval, conn.client.SetGroupJoinApprovalMode},
		{change.OnlyAdminsAdd, func(ctx context.Context, group types.JID, only bool) error {
			mode := types.GroupMemberAddModeAllMember
			if only {
				mode = types.GroupMemberAddModeAdmin
			}
			return conn.client.SetGroupMemberAddMode(ctx, group, mode)
		}},
	} {
		if flag.value != nil {
			if err := flag.set(ctx, group, *flag.value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) JoinGroup(ctx context.Context, link string) (id parley.GroupID, waits bool, err error) {
	id, err = query(ctx, s, func(ctx context.Context, conn *connection) (parley.GroupID, error) {
		g, err := conn.client.GetGroupInfoFromLink(ctx, link)
		if err == nil {
			_, err = conn.client.JoinGroupWithLink(ctx, link)
		}
		switch {
		case errors.Is(err, whatsmeow.ErrInviteLinkInvalid), errors.Is(err, whatsmeow.ErrInviteLinkRevoked),
			errors.Is(err, whatsmeow.ErrIQNotFound):
			return "", parley.ErrNotFound
		case errors.Is(err, whatsmeow.ErrIQForbidden), errors.Is(err, whatsmeow.ErrIQNotAuthorized):
			return "", network.Refuse(parley.Refused, "WhatsApp does not let this account join the group: it may have been removed from it.")
		case err != nil:
			return "", conn.queryError("join a group", err)
		}
		waits = g.IsJoinApprovalRequired
		return parley.GroupID(g.JID.String()), nil
	})
	return id, waits, err
}

func (s *session) JoinRequests(ctx context.Context, id parley.GroupID) ([]parley.JoinRequest, error) {
	return query(ctx, s, func(ctx context.Context, conn *connection) ([]parley.JoinRequest, error) {
		group, ok := groupJID(id)
		if !ok {
			return nil, parley.ErrNotFound
		}
		asked, err := conn.client.GetGroupRequestParticipants(ctx, group)
		if err != nil {
			return nil, conn.adminError(ctx, group, "read who asks to join a group", err)
		}
		all := make([]parley.JoinRequest, len(asked))
		for i, one := range asked {
			all[i].At = one.RequestedAt
			if all[i].ID, _, err = conn.contactFor(ctx, one.JID, types.EmptyJID); err != nil {
				return nil, err
			}
			if err := conn.storeMet(ctx, all[i].ID); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
}
