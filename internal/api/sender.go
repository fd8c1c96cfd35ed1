package api

import (
	"context"

	"parley"
	"parley/internal/store"
	"parley/internal/token"
)

// sender is who sent a message: a person at the console, or a program with a token.
type sender struct {
	Kind store.ActorKind `json:"kind"`
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Role *parley.Role    `json:"role"` // of a console session
}

// findSenders says who sent messages, by their bare ids. Messages of contacts and of the phone itself are missing.
func (s *server) findSenders(ctx context.Context, ms []parley.Message) (map[parley.MessageID]*sender, error) {
	var fromConsole []parley.MessageID
	var ids []parley.TokenID
	seen := map[parley.TokenID]bool{}
	for i := range ms {
		switch m := &ms[i]; {
		case !m.FromMe:
		case m.Token == "":
			fromConsole = append(fromConsole, m.ID)
		case !seen[m.Token]:
			seen[m.Token] = true
			ids = append(ids, m.Token)
		}
	}
	people, err := s.config.Store.Senders(ctx, fromConsole)
	if err != nil {
		return nil, err
	}
	names, err := s.config.Store.TokenNames(ctx, ids)
	if err != nil {
		return nil, err
	}
	senders := make(map[parley.MessageID]*sender, len(ms))
	for i := range ms {
		m := &ms[i]
		if by, found := people[m.ID]; found && m.FromMe {
			senders[m.ID] = &sender{by.Kind, by.ID, by.Name, &by.Role}
		} else if m.Token != "" {
			by := &sender{Kind: store.ActorToken, ID: string(m.Token), Name: names[m.Token]}
			if token.IsLocalID(m.Token) {
				by.Kind = store.ActorLocal
			}
			senders[m.ID] = by
		}
	}
	return senders, nil
}
