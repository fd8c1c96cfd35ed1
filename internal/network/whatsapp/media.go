package whatsapp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waMmsRetry"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/cbcutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"

	"parley"
	"parley/internal/network"
)

func mediaType(c parley.Content) whatsmeow.MediaType {
	switch c.(type) {
	case parley.Image, parley.Sticker:
		return whatsmeow.MediaImage
	case parley.Video:
		return whatsmeow.MediaVideo
	case parley.Voice:
		return whatsmeow.MediaAudio
	}
	return whatsmeow.MediaDocument
}

const mediaKeySize = 32

// upload encrypts a file with its stored key and uploads it. The same file gives the same ciphertext, so a second
// upload replaces the first.
func (conn *connection) upload(ctx context.Context, m *parley.Media, kind whatsmeow.MediaType) (up whatsmeow.UploadResponse, err error) {
	plain, err := conn.s.d.config.Media(ctx, m.Key)
	if errors.Is(err, os.ErrNotExist) {
		return up, network.Refuse(parley.GaveUp, "The file of this message no longer exists.")
	}
	if err != nil {
		return up, fmt.Errorf("open a file: %w", err)
	}
	defer plain.Close()
	sealed, err := os.CreateTemp(conn.s.d.config.TempDir, "parley-upload-*")
	if errors.Is(err, os.ErrNotExist) && os.Mkdir(conn.s.d.config.TempDir, 0o700) == nil { // it was empty for long
		sealed, err = os.CreateTemp(conn.s.d.config.TempDir, "parley-upload-*")
	}
	if err != nil {
		return up, fmt.Errorf("make a temporary file: %w", err)
	}
	defer os.Remove(sealed.Name())
	defer sealed.Close()
	if err := conn.refreshMediaHosts(ctx); err != nil {
		return up, conn.queryError("upload a file", err)
	}
	if len(m.MediaKey) != mediaKeySize {
		if up, err = conn.client.UploadReader(ctx, plain, sealed, kind); err != nil {
			return up, conn.queryError("upload a file", err)
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
	if err := conn.inner().RawUpload(ctx, sealed, sealedSize, sealedSum, kind, false, &up); err != nil {
		return up, conn.queryError("upload a file", err)
	}
	return up, nil
}

// maxHostTries is how often media servers are queried before a file waits for its next attempt.
const maxHostTries = 3

// refreshMediaHosts has whatsmeow know the network's media servers. It would ask for them under a lock on which
// every file of the account waits.
func (conn *connection) refreshMediaHosts(ctx context.Context) error {
	_, err := conn.mediaHosts.join(conn, func() (_ struct{}, err error) {
		for range maxHostTries {
			ctx, cancel := context.WithTimeout(conn.ctx, conn.s.d.queryRetryAfter)
			_, err = conn.inner().RefreshMediaConn(ctx, false)
			cancel()
			if err == nil || conn.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		return struct{}{}, err
	}).await(ctx)
	return err
}

func mediaKeys(key []byte, kind whatsmeow.MediaType) (iv, cipher, mac []byte) {
	all := hkdfutil.SHA256(key, nil, []byte(kind), 112)
	return all[:16], all[16:48], all[48:80]
}

const (
	// maxDownload is as much as any file that we would send; a message with a larger one comes without it.
	maxDownload = 100 << 20
	// maxPath bounds the address of a file, which its sender wrote.
	maxPath = 2048
	// reuploadTimeout bounds a repeated upload by the account's phone. A phone that is off gets the request again at
	// the next attempt.
	reuploadTimeout = 15 * time.Second
)

// fileReference holds everything needed to fetch a file, also after a restart.
type fileReference struct {
	Kind      whatsmeow.MediaType `json:"kind,omitempty"`
	Path      string              `json:"path,omitempty"`
	Key       []byte              `json:"key,omitempty"`
	SHA256    []byte              `json:"sha256,omitempty"`
	EncSHA256 []byte              `json:"enc_sha256,omitempty"` // of the ciphertext on the server
	Chat      string              `json:"chat,omitempty"`       // with ID, names the message to the account's phone
	ID        types.MessageID     `json:"id,omitempty"`
}

// These make it a file that whatsmeow can download.
func (r *fileReference) GetDirectPath() string             { return r.Path }
func (r *fileReference) GetMediaKey() []byte               { return r.Key }
func (r *fileReference) GetFileSHA256() []byte             { return r.SHA256 }
func (r *fileReference) GetFileEncSHA256() []byte          { return r.EncSHA256 }
func (r *fileReference) GetMediaType() whatsmeow.MediaType { return r.Kind }

// isValid reports whether whatsmeow can try to download the file.
func (r *fileReference) isValid() bool {
	return strings.HasPrefix(r.Path, "/") && len(r.Path) <= maxPath &&
		len(r.Key) == mediaKeySize && len(r.SHA256) == sha256.Size && len(r.EncSHA256) == sha256.Size
}

// reference returns the reference of a message's file; nil if it has none or it cannot be fetched.
func (conn *connection) reference(info *types.MessageInfo, p parsed) []byte {
	f := p.file
	if f == nil {
		return nil
	}
	r := fileReference{
		Kind: whatsmeow.GetMediaType(f), Path: f.GetDirectPath(), Key: f.GetMediaKey(), Chat: info.Chat.String(), ID: info.ID,
		SHA256: f.GetFileSHA256(), EncSHA256: f.GetFileEncSHA256(),
	}
	switch {
	case f.GetFileLength() > uint64(conn.s.d.mediaLimits.maxBytes):
		conn.log.Warnf("the file of message %s is too large to be fetched", info.ID)
		return nil
	case !r.isValid():
		conn.log.Warnf("the file of message %s has no address or no key, and cannot be fetched", info.ID)
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		conn.log.Warnf("refer to the file of message %s: %v", info.ID, err)
		return nil
	}
	return raw
}

var (
	errNoReference = network.Refuse(parley.Refused, "The file has no address.")
	errFileGone    = network.Refuse(parley.Refused, "The network no longer has the file.")
)

// Fetch downloads, verifies and decrypts a file. If the network has lost it, the account's phone uploads it again.
func (s *session) Fetch(ctx context.Context, reference []byte, to *os.File) (err error) {
	defer s.recoverPanic(&err)
	var r fileReference
	if err := json.Unmarshal(reference, &r); err != nil {
		return errNoReference
	}
	conn, err := s.connected()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(conn.handlerCtx, cancel)()
	err = conn.download(ctx, &r, to)
	if isGone(err) {
		if r.Path, err = conn.requestReupload(ctx, &r); err == nil {
			err = conn.download(ctx, &r, to)
		}
	}
	switch {
	case err == nil:
		return nil
	case conn.handlerCtx.Err() != nil:
		return network.NotConnected(err)
	case isPermanent(err):
		conn.log.Warnf("the file of message %s cannot be fetched: %v", r.ID, err)
		return errFileGone
	}
	return fmt.Errorf("fetch a file: %w", err)
}

// download makes one attempt: the gateway decides when there is another.
func (conn *connection) download(ctx context.Context, r *fileReference, to *os.File) error {
	if err := errors.Join(to.Truncate(0), second(to.Seek(0, 0))); err != nil {
		return err
	}
	if err := conn.refreshMediaHosts(ctx); err != nil {
		return err
	}
	return conn.client.DownloadToFile(context.WithValue(ctx, noRetryKey{}, true), r, to)
}

func second[T any](_ T, err error) error { return err }

func isGone(err error) bool {
	return errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith403) || errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith404) ||
		errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith410)
}

func isPermanent(err error) bool {
	for _, final := range []error{
		whatsmeow.ErrInvalidMediaHMAC, whatsmeow.ErrInvalidMediaEncSHA256, whatsmeow.ErrInvalidMediaSHA256,
		whatsmeow.ErrUnknownMediaType, whatsmeow.ErrMediaNotAvailableOnPhone, errTooLarge,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// requestReupload asks the account's phone to upload a file again and returns its new path.
func (conn *connection) requestReupload(ctx context.Context, r *fileReference) (path string, err error) {
	chat, err := types.ParseJID(r.Chat)
	if err != nil {
		return "", err
	}
	answer := conn.s.uploads.expect(r.ID)
	defer conn.s.uploads.remove(r.ID)
	info := &types.MessageInfo{MessageSource: types.MessageSource{Chat: chat}, ID: r.ID}
	if err := conn.client.SendMediaRetryReceipt(ctx, info, r.Key); err != nil {
		return "", conn.queryError("ask the phone for a file", err)
	}
	timer := time.NewTimer(conn.s.d.reuploadTimeout)
	defer timer.Stop()
	select {
	case e := <-answer:
		response, err := whatsmeow.DecryptMediaRetryNotification(e, r.Key)
		if err != nil {
			return "", err
		}
		switch result := response.GetResult(); {
		case result == waMmsRetry.MediaRetryNotification_NOT_FOUND:
			return "", whatsmeow.ErrMediaNotAvailableOnPhone
		case result != waMmsRetry.MediaRetryNotification_SUCCESS || !strings.HasPrefix(response.GetDirectPath(), "/"):
			return "", fmt.Errorf("the phone did not upload the file: %s", result)
		}
		return response.GetDirectPath(), nil
	case <-timer.C:
		return "", errors.New("the phone did not upload the file again in time")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
