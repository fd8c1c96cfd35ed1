package whatsapptest

import (
	"encoding/base64"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waMmsRetry"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"google.golang.org/protobuf/proto"
)

// notOnPhone is the code of a phone that has the file no longer either.
const notOnPhone = 2

// mediaOf finds the file in a message.
func mediaOf(m *waE2E.Message) Media {
	switch kindOf(m) {
	case KindImage:
		return m.GetImageMessage()
	case KindVideo:
		return m.GetVideoMessage()
	case KindAudio:
		return m.GetAudioMessage()
	case KindSticker:
		return m.GetStickerMessage()
	case KindDocument:
		if d := m.GetDocumentMessage(); d != nil {
			return d
		}
		return m.GetDocumentWithCaptionMessage().GetMessage().GetDocumentMessage()
	default:
		return nil
	}
}

// uploadAgain answers a linked client that could not download a file: the phone, which has it, puts it onto
// the media server once more.
func (p *Phone) uploadAgain(to *device, r *node) {
	id := str(r, "id")
	answer := []node{n("error", attrs{"code": notOnPhone})}
	if m, err := p.known(id); err == nil {
		if media := mediaOf(m.Raw); media != nil && asksFor(media, id, r) {
			if sealed, err := p.restored(media, id); err == nil {
				answer = sealed
			}
		}
	}
	rmr := r.GetChildByTag("rmr")
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify(to, p.account.pn(0), "mediaretry", attrs{"id": id}, append(answer, rmr)...)
}

// asksFor checks that a request was made by somebody who can read the message.
func asksFor(media Media, id string, r *node) bool {
	sealed, iv := content(r.GetChildByTag("encrypt", "enc_p")), content(r.GetChildByTag("encrypt", "enc_iv"))
	if len(iv) != 12 {
		return false
	}
	_, err := gcmutil.Decrypt(retryKey(media), iv, sealed, []byte(id))
	return err == nil
}

// restored puts a file back and describes where it is now.
func (p *Phone) restored(media Media, id string) ([]node, error) {
	token := base64.URLEncoding.EncodeToString(media.GetFileEncSHA256())
	s := p.server
	s.mu.Lock()
	body, ok := s.attic[token]
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

func retryKey(media Media) []byte {
	return hkdfutil.SHA256(media.GetMediaKey(), nil, []byte("WhatsApp Media Retry Notification"), 32)
}
