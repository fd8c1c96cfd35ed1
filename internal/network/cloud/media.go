package cloud

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/safehttp"
	"parley/internal/store"
)

// uploadLife is how long an uploaded file is used: a day less than Meta stores it.
const uploadLife = 29 * 24 * time.Hour

// fileLimit is what Meta accepts of a kind of file. No types: any.
type fileLimit struct {
	types []string
	size  int64
}

var fileLimits = map[string]fileLimit{
	"image":    {[]string{"image/jpeg", "image/png"}, 5 << 20},
	"video":    {[]string{"video/mp4", "video/3gpp"}, 16 << 20},
	"audio":    {[]string{"audio/aac", "audio/mp4", "audio/mpeg", "audio/amr", "audio/ogg"}, 16 << 20},
	"sticker":  {[]string{"image/webp"}, 500 << 10},
	"document": {nil, 100 << 20},
}

const (
	stillSticker = 100 << 10 // a sticker that does not move is smaller
	stickerSide  = 512
)

// metaKinds are Meta's names of messages with files.
var metaKinds = map[parley.Kind]string{parley.KindImage: "image", parley.KindVideo: "video", parley.KindFile: "document",
	parley.KindVoice: "audio", parley.KindSticker: "sticker"}

// CheckFile has callers learn of a file that Meta would not accept before it is queued.
func (*Driver) CheckFile(c parley.Content) string {
	file := parley.MediaIn(c)
	if file == nil {
		return ""
	}
	kind := metaKinds[c.Kind()]
	if c.Kind() == parley.KindTemplate {
		kind = headerKind(file.MIME)
	}
	if e, ok := errors.AsType[*network.Error](checkFile(kind, *file)); ok {
		return e.Failure.Message
	}
	if kind == "sticker" && (file.Width != stickerSide || file.Height != stickerSide) {
		return fmt.Sprintf("WhatsApp's official API accepts stickers of %[1]d×%[1]d pixels. Convert the file first.", stickerSide)
	}
	return ""
}

// checkFile refuses a file that Meta would not accept.
func checkFile(kind string, file parley.Media) error {
	limit := fileLimits[kind]
	if kind == "sticker" && !file.Animated {
		limit.size = stillSticker
	}
	base, _, _ := mime.ParseMediaType(file.MIME)
	switch {
	case limit.types != nil && !slices.Contains(limit.types, base):
		return network.Refuse(parley.Refused, fmt.Sprintf("WhatsApp's official API accepts %s as %s, not %s. Convert the file first.",
			strings.Join(limit.types, ", "), kind, base))
	case file.Size > limit.size:
		return network.Refuse(parley.Refused, fmt.Sprintf("The file is larger than %s, which WhatsApp's official API accepts at most as %s.",
			safehttp.Size(limit.size), kind))
	}
	return nil
}

// upload returns Meta's id of a file. A file is uploaded once for each number.
func (s *session) upload(ctx context.Context, a account, kind string, file parley.Media) (string, error) {
	if err := checkFile(kind, file); err != nil {
		return "", err
	}
	id, err := s.d.config.Store.RemoteFile(ctx, s.channel.Code, file.SHA256, time.Now())
	if err != nil || id != "" {
		return id, err
	}
	plain, err := s.d.config.Media(ctx, file.Key)
	if errors.Is(err, os.ErrNotExist) {
		return "", network.Refuse(parley.GaveUp, "The file of this message no longer exists.")
	}
	if err != nil {
		return "", fmt.Errorf("open a file: %w", err)
	}
	defer plain.Close()
	contentType, body := newForm(file, plain)
	defer body.Close()
	resp, err := s.d.request(ctx, s.d.config.Files, a, http.MethodPost, a.base()+"/"+a.PhoneID+"/media", proof(),
		http.Header{"Content-Type": {contentType}}, body)
	var uploaded struct{ ID string }
	if err == nil {
		err = decode(resp, &uploaded)
	}
	if lost, ok := errors.AsType[*lostError](err); ok && lost.sent {
		return "", fmt.Errorf("upload a file: %w", err) // nothing was sent to anybody: it is repeated
	}
	if err != nil {
		return "", s.toSendError("", err, time.Now())
	}
	return uploaded.ID, s.d.config.Store.Tx(ctx, func(tx *store.Tx) error {
		return tx.SetRemoteFile(ctx, s.channel.Code, file.SHA256, uploaded.ID, time.Now().Add(uploadLife))
	})
}

// newForm makes the body of an upload as a stream.
func newForm(file parley.Media, plain io.Reader) (contentType string, body io.ReadCloser) {
	name := file.Filename
	if name == "" {
		name = "file"
	}
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	go func() { // it ends when the body is read or closed
		err := errors.Join(form.WriteField("messaging_product", "whatsapp"), form.WriteField("type", file.MIME))
		var part io.Writer
		if err == nil {
			part, err = form.CreatePart(textproto.MIMEHeader{
				"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": "file", "filename": name})},
				"Content-Type":        {file.MIME},
			})
		}
		if err == nil {
			_, err = io.Copy(part, plain)
		}
		writer.CloseWithError(errors.Join(err, form.Close()))
	}()
	return form.FormDataContentType(), reader
}

// fileReference is what is needed to fetch a file that came. Meta stores it for 7 days.
type fileReference struct {
	ID     string `json:"id"`
	SHA256 []byte `json:"sha256,omitempty"`
}

// MaxDownload is as much as any file that we would send.
const MaxDownload = 100 << 20

func (s *session) Fetch(ctx context.Context, reference []byte, to *os.File) error {
	var ref fileReference
	if json.Unmarshal(reference, &ref) != nil || !isDigits(ref.ID) {
		return network.Refuse(parley.GaveUp, "The reference of the file cannot be read.")
	}
	if !s.enter() {
		return network.NotConnected(nil)
	}
	defer s.running.Done()
	a, err := s.account(ctx)
	if err != nil {
		return network.NotConnected(err)
	}
	var found struct {
		URL    string
		SHA256 string
	}
	query := url.Values{"phone_number_id": {a.PhoneID}}
	if err := s.d.do(ctx, a, http.MethodGet, ref.ID, query, nil, &found); err != nil {
		return s.fetchError(err)
	}
	if !a.trusts(found.URL) {
		return network.Refuse(parley.GaveUp, "Meta named an address for the file that is not one of its own.")
	}
	resp, err := s.d.request(ctx, s.d.config.Files, a, http.MethodGet, found.URL, nil, http.Header{}, nil)
	if err != nil {
		return s.fetchError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK { // an expired address is renewed by the next attempt
		return fmt.Errorf("status %d instead of a file", resp.StatusCode)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(resp.Body, MaxDownload+1))
	switch want := ref.SHA256; {
	case err != nil:
		return fmt.Errorf("fetch a file: %w", err)
	case n > MaxDownload:
		return network.Refuse(parley.GaveUp, "The file is larger than 100 MiB.")
	case want != nil && !bytes.Equal(want, sum.Sum(nil)):
		return errors.New("the file is not the one that was announced")
	}
	return nil
}

// fetchError classifies an error of a download. A file that Meta does not have any more is not asked for again.
func (s *session) fetchError(err error) error {
	if e, ok := asGraphError(err); ok && ruleFor(e).action == fail {
		return network.Refuse(parley.GaveUp, "Meta no longer has the file.")
	}
	return err
}

// trusts reports whether an address may get the access token.
func (a account) trusts(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if base, err := url.Parse(a.base()); err == nil && u.Scheme == base.Scheme && u.Host == base.Host {
		return true
	}
	host := strings.ToLower(u.Hostname())
	return u.Scheme == "https" && (strings.HasSuffix(host, ".fbsbx.com") || strings.HasSuffix(host, ".fbcdn.net"))
}

// readSum reads the hash of a file, which Meta writes in base64 or hexadecimal; nil: it cannot be read.
func readSum(text string) []byte {
	if sum, err := hex.DecodeString(text); err == nil && len(sum) == sha256.Size {
		return sum
	}
	if sum, err := base64.StdEncoding.DecodeString(text); err == nil && len(sum) == sha256.Size {
		return sum
	}
	return nil
}

func isDigits(text string) bool {
	return text != "" && len(text) <= 32 && strings.Trim(text, "0123456789") == ""
}
