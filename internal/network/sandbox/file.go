package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// fileReference names a file to the channel.
type fileReference struct {
	Phone   int64            `json:"phone"`
	Message parley.MessageID `json:"message"`
}

// addFile stores the file of a message that a phone sends.
func addFile(tx *sqldb.Tx, phone int64, id parley.MessageID, content []byte) error {
	_, err := tx.Exec(`INSERT INTO files (phone, message, content, at) VALUES ($1, $2, $3, $4)`,
		phone, string(id), content, time.Now().UnixMilli())
	return err
}

// file reads a file; there being none is sql.ErrNoRows.
func (n *Network) file(ctx context.Context, r fileReference) (content []byte, err error) {
	err = n.db.Read(ctx).QueryRow(`SELECT content FROM files WHERE phone = $1 AND message = $2`,
		[]any{r.Phone, string(r.Message)}, &content)
	return content, err
}

// Fetch writes a file that a phone sent.
func (s *session) Fetch(ctx context.Context, reference []byte, to *os.File) error {
	if err := s.connected(); err != nil {
		return err
	}
	var r fileReference
	if err := json.Unmarshal(reference, &r); err != nil {
		return network.Refuse(parley.Refused, "The file has no address.")
	}
	content, err := s.world.net.file(ctx, r)
	if errors.Is(err, sql.ErrNoRows) {
		return network.Refuse(parley.Refused, "The network does not have the file any more.")
	}
	if err != nil {
		return fmt.Errorf("read a file: %w", err)
	}
	_, err = to.Write(content)
	return err
}

// SentFile returns the file of a message that a phone sent, while the network has it; else the channel has it,
// and this is [parley.ErrNotFound].
func (n *Network) SentFile(ctx context.Context, channel parley.ChannelCode, number string, id parley.MessageID) ([]byte, error) {
	_, p, err := n.find(ctx, channel, number)
	if err != nil {
		return nil, err
	}
	content, err := n.file(ctx, fileReference{p.id, id})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, parley.ErrNotFound
	}
	return content, err
}
