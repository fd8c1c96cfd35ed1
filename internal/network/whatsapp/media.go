package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/util/cbcutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"

	"parley"
	"parley/internal/network"
)

// mediaType is the kind under which the network keeps a file.
func mediaType(c parley.Content) whatsmeow.MediaType {
	switch c.(type) {
	case parley.Image:
		return whatsmeow.MediaImage
	case parley.Video:
		return whatsmeow.MediaVideo
	case parley.Voice:
		return whatsmeow.MediaAudio
	}
	return whatsmeow.MediaDocument
}

const mediaKeySize = 32

// upload encrypts a file under the key that was chosen for it and puts it on the network's media server.
// The same file gives the same ciphertext, so that a second upload replaces the first.
func (l *line) upload(ctx context.Context, m *parley.Media, kind whatsmeow.MediaType) (up whatsmeow.UploadResponse, err error) {
	plain, err := l.s.d.Media(m.Key)
	if errors.Is(err, os.ErrNotExist) {
		return up, network.Refuse(parley.GaveUp, "The file of this message is not there any more.")
	}
	if err != nil {
		return up, fmt.Errorf("open a file: %w", err)
	}
	defer plain.Close()
	sealed, err := os.CreateTemp(l.s.d.TempDir, "parley-upload-*")
	if err != nil {
		return up, fmt.Errorf("make a temporary file: %w", err)
	}
	defer os.Remove(sealed.Name())
	defer sealed.Close()
	if err := l.knowMediaHosts(ctx); err != nil {
		return up, l.asked("upload a file", err)
	}
	if len(m.MediaKey) != mediaKeySize {
		if up, err = l.client.UploadReader(ctx, plain, sealed, kind); err != nil {
			return up, l.asked("upload a file", err)
		}
		return up, nil
	}
	iv, key, macKey := mediaKeys(m.MediaKey, kind)
	plainSum, sealedSum, size, sealedSize, err := cbcutil.EncryptStream(key, iv, macKey, plain, sealed)
	if err != nil {
		return up, fmt.Errorf("encrypt a file: %w", err)
	}
	if _, err := sealed.Seek(0, io.SeekStart); err != nil {
		return up, fmt.Errorf("read a temporary file: %w", err)
	}
	up = whatsmeow.UploadResponse{MediaKey: m.MediaKey, FileSHA256: plainSum, FileEncSHA256: sealedSum, FileLength: size}
	if err := l.inner().RawUpload(ctx, sealed, sealedSize, sealedSum, kind, false, &up); err != nil {
		return up, l.asked("upload a file", err)
	}
	return up, nil
}

// hostTries is how often the network is asked for its media servers before a file waits for its next attempt.
const hostTries = 3

// knowMediaHosts has whatsmeow know the network's media servers. It would ask for them under a lock on which
// every file of the account waits.
func (l *line) knowMediaHosts(ctx context.Context) error {
	_, err := l.mediaHosts.join(l, func() (_ struct{}, err error) {
		for range hostTries {
			ctx, cancel := context.WithTimeout(l.ctx, l.s.d.askAgain)
			_, err = l.inner().RefreshMediaConn(ctx, false)
			cancel()
			if err == nil || l.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		return struct{}{}, err
	}).await(ctx)
	return err
}

// mediaKeys derives what a file is encrypted with from its key.
func mediaKeys(key []byte, kind whatsmeow.MediaType) (iv, cipher, mac []byte) {
	all := hkdfutil.SHA256(key, nil, []byte(kind), 112)
	return all[:16], all[16:48], all[48:80]
}
