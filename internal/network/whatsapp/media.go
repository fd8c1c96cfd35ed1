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

// mediaKeys derives what a file is encrypted with from its key.
func mediaKeys(key []byte, kind whatsmeow.MediaType) (iv, cipher, mac []byte) {
	all := hkdfutil.SHA256(key, nil, []byte(kind), 112)
	return all[:16], all[16:48], all[48:80]
}

const (
	// maxDownload is as much as any file that we would send; a message with a larger one comes without it.
	maxDownload = 100 << 20
	// downloadTries are beside those that whatsmeow makes itself.
	downloadTries = 3
)

// download fetches the file of a message; nil where it is not to be had: the message is worth more than its
// file and comes without it. It reports false when the line ended before it was done.
func (l *line) download(id string, file whatsmeow.DownloadableMessage) ([]byte, bool) {
	if x, ok := file.(sized); ok && x.GetFileLength() > uint64(l.s.d.fetching.most) {
		l.log.Warnf("the file of message %s is too large to be kept", id)
		return nil, true
	}
	for tries := 1; ; tries++ {
		data, err := l.client.Download(l.taking, file)
		switch {
		case err == nil && data == nil:
			return []byte{}, true
		case err == nil:
			return data, true
		case l.taking.Err() != nil:
			return nil, false
		case isGone(err) || tries >= downloadTries:
			l.log.Warnf("the file of message %s could not be fetched: %v", id, err)
			return nil, true
		}
		if !l.pause(retryPause(tries * tries)) {
			return nil, false
		}
	}
}

// isGone reports whether the network does not have a file any more, or never had what was promised.
func isGone(err error) bool {
	for _, final := range []error{
		whatsmeow.ErrMediaDownloadFailedWith403, whatsmeow.ErrMediaDownloadFailedWith404, whatsmeow.ErrMediaDownloadFailedWith410,
		whatsmeow.ErrNoURLPresent, whatsmeow.ErrInvalidMediaHMAC, whatsmeow.ErrInvalidMediaEncSHA256, whatsmeow.ErrInvalidMediaSHA256,
		whatsmeow.ErrTooShortFile, whatsmeow.ErrUnknownMediaType,
		errTooLarge,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}
