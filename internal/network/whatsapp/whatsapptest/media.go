package whatsapptest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waMmsRetry"
	"go.mau.fi/whatsmeow/util/cbcutil"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"google.golang.org/protobuf/proto"
)

const (
	maxMedia = 128 << 20 // more than any kind of message may carry
	macSize  = 10        // of the authentication code behind a ciphertext
)

func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	if f := s.nextFault(faultUpload, nil, nil, ""); f != nil {
		http.Error(w, http.StatusText(f.code), f.code)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMedia))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	sum := sha256.Sum256(body)
	token := r.PathValue("token")
	if base64.URLEncoding.EncodeToString(sum[:]) != token {
		s.violate("upload whose name is not its hash")
		http.Error(w, "hash mismatch", http.StatusBadRequest)
		return
	}
	path := s.store(r.PathValue("type"), token, body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"url": "https://" + mediaHost + path, "direct_path": path, "handle": token, "object_id": token,
	})
}

// store stores a ciphertext and returns its path, which clients extend with parameters.
func (s *Server) store(kind, token string, body []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[token] = body
	return "/mms/" + kind + "/" + token + "?v=1"
}

func (s *Server) serveDownload(w http.ResponseWriter, r *http.Request) {
	if f := s.nextFault(faultDownload, nil, nil, ""); f != nil {
		http.Error(w, http.StatusText(f.code), f.code)
		return
	}
	if !s.holdDownload(r.Context()) {
		panic(http.ErrAbortHandler) // without a response
	}
	s.mu.Lock()
	body, ok := s.blobs[r.PathValue("token")]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(body)
}

// HoldDownloads makes the media server accept requests for files without a response until it is called with false.
func (s *Server) HoldDownloads(hold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case hold && s.downloads == nil:
		s.downloads = make(chan struct{})
	case !hold && s.downloads != nil:
		close(s.downloads)
		s.downloads = nil
	}
}

func (s *Server) AwaitHeld(ctx context.Context, downloads int) error {
	return s.await(ctx, func() bool { return s.held == downloads })
}

// holdDownload waits while downloads are held. It returns false if the client gave up.
func (s *Server) holdDownload(ctx context.Context) bool {
	s.mu.Lock()
	released := s.downloads
	s.mu.Unlock()
	if released == nil {
		return true
	}
	s.countHeld(1)
	defer s.countHeld(-1)
	select {
	case <-released:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) countHeld(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += n
	s.changed.notify()
}

// PurgeMedia throws all media away, as the real network does after some weeks. Phones still have them.
func (s *Server) PurgeMedia() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.phoneMedia, s.blobs)
	clear(s.blobs)
}

// Download fetches a file that a message points at, verifies and decrypts it.
func (p *Phone) Download(m whatsmeow.DownloadableMessage) ([]byte, error) {
	p.server.mu.Lock()
	body, ok := p.server.blobs[base64.URLEncoding.EncodeToString(m.GetFileEncSHA256())]
	p.server.mu.Unlock()
	if !ok || len(body) <= macSize {
		return nil, errors.New("no such file")
	}
	keys := mediaKeys(m.GetMediaKey(), whatsmeow.GetMediaType(m))
	sealed, mac := body[:len(body)-macSize], body[len(body)-macSize:]
	if !hmac.Equal(keys.mac(sealed), mac) {
		return nil, errors.New("the file's code is wrong")
	}
	plain, err := cbcutil.Decrypt(keys.cipher, keys.iv, slices.Clone(sealed))
	if err != nil {
		return nil, fmt.Errorf("decrypt file: %w", err)
	}
	if sum := sha256.Sum256(plain); !slices.Equal(sum[:], m.GetFileSHA256()) {
		return nil, errors.New("the file's hash is wrong")
	}
	return plain, nil
}

type mediaKey struct{ iv, cipher, macKey []byte }

func mediaKeys(key []byte, kind whatsmeow.MediaType) mediaKey {
	all := hkdfutil.SHA256(key, nil, []byte(kind), 112)
	return mediaKey{all[:16], all[16:48], all[48:80]}
}

func (k mediaKey) mac(sealed []byte) []byte {
	h := hmac.New(sha256.New, k.macKey)
	h.Write(k.iv)
	h.Write(sealed)
	return h.Sum(nil)[:macSize]
}

type file struct {
	path                  string
	key, plainSum, encSum []byte
	size                  uint64
}

// upload encrypts a file and puts it on the media server.
func (p *Phone) upload(kind whatsmeow.MediaType, data []byte) (file, error) {
	key := random(32)
	keys := mediaKeys(key, kind)
	sealed, err := cbcutil.Encrypt(keys.cipher, keys.iv, slices.Clone(data))
	if err != nil {
		return file{}, fmt.Errorf("encrypt file: %w", err)
	}
	body := append(sealed, keys.mac(sealed)...)
	plain, enc := sha256.Sum256(data), sha256.Sum256(body)
	path := p.server.store("phone", base64.URLEncoding.EncodeToString(enc[:]), body)
	return file{path, key, plain[:], enc[:], uint64(len(data))}, nil
}

func (p *Phone) SendImage(ctx context.Context, to Chat, data []byte, mime, caption string) (string, error) {
	f, err := p.upload(whatsmeow.MediaImage, data)
	if err != nil {
		return "", err
	}
	return p.SendMessage(ctx, to, &waE2E.Message{ImageMessage: &waE2E.ImageMessage{
		Mimetype: &mime, Caption: proto.String(caption), DirectPath: &f.path, MediaKey: f.key,
		FileSHA256: f.plainSum, FileEncSHA256: f.encSum, FileLength: &f.size,
	}})
}

// notOnPhone is the code of a phone that has the file no longer either.
const notOnPhone = 2

// reupload puts a picture that a linked client could not download back onto the media server.
func (p *Phone) reupload(to *device, r *node) {
	id := str(r, "id")
	answer := []node{n("error", attrs{"code": notOnPhone})}
	if m, err := p.message(id); err == nil {
		if media := m.Raw.GetImageMessage(); media != nil && asksFor(media, id, r) {
			if sealed, err := p.restoreMedia(media, id); err == nil {
				answer = sealed
			}
		}
	}
	rmr := r.GetChildByTag("rmr")
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify(to, p.account.pnJID(0), "mediaretry", attrs{"id": id}, append(answer, rmr)...)
}

// asksFor checks that the requester can decrypt the message.
func asksFor(media *waE2E.ImageMessage, id string, r *node) bool {
	sealed, iv := content(r.GetChildByTag("encrypt", "enc_p")), content(r.GetChildByTag("encrypt", "enc_iv"))
	if len(iv) != 12 {
		return false
	}
	_, err := gcmutil.Decrypt(retryKey(media), iv, sealed, []byte(id))
	return err == nil
}

// restoreMedia puts a file back and returns its new location.
func (p *Phone) restoreMedia(media *waE2E.ImageMessage, id string) ([]node, error) {
	token := base64.URLEncoding.EncodeToString(media.GetFileEncSHA256())
	s := p.server
	s.mu.Lock()
	body, ok := s.phoneMedia[token]
	if ok {
		s.blobs[token] = body
	}
	_, there := s.blobs[token]
	s.mu.Unlock()
	if !there {
		return nil, whatsmeow.ErrMediaNotAvailableOnPhone
	}
	plain, err := proto.Marshal(&waMmsRetry.MediaRetryNotification{
		StanzaID: &id, DirectPath: proto.String("/mms/again/" + token + "?v=2"),
		Result: waMmsRetry.MediaRetryNotification_SUCCESS.Enum(),
	})
	if err != nil {
		return nil, err
	}
	iv := random(12)
	sealed, err := gcmutil.Encrypt(retryKey(media), iv, plain, []byte(id))
	if err != nil {
		return nil, err
	}
	return []node{n("encrypt", nil, leaf("enc_p", sealed), leaf("enc_iv", iv))}, nil
}

func retryKey(media *waE2E.ImageMessage) []byte {
	return hkdfutil.SHA256(media.GetMediaKey(), nil, []byte("WhatsApp Media Retry Notification"), 32)
}
