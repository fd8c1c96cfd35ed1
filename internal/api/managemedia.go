package api

import (
	"context"

	"parley"
)

// readMessageFile answers with the file that a message carries.
func (s *server) readMessageFile(ctx context.Context, r *request) (answer, error) {
	m, err := s.messageNamed(ctx, r)
	if err != nil {
		return answer{}, err
	}
	channel, there := s.Gateway.Channel(m.Channel)
	if !there || !channel.Settings.KeepsText() || m.Status == parley.Deleted {
		return answer{}, errNoFile
	}
	return s.openFile(parley.MediaOf(m.Content))
}
