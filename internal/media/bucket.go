package media

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// Bucket is a bucket of a storage that speaks the protocol of Amazon S3.
type Bucket struct {
	Name   string
	Prefix string // empty, or ends with a slash
	// Endpoint is the URL of the server; empty: Amazon's in the region.
	Endpoint string
	Region   string // empty: DefaultRegion
	// AccessKey and SecretKey sign the requests. Never log SecretKey.
	AccessKey, SecretKey string
}

// DefaultRegion is the region of servers that have none.
const DefaultRegion = "us-east-1"

// String is the bucket's address as in the setting.
func (b Bucket) String() string { return "s3://" + b.Name + "/" + b.Prefix }

// ParseBucket parses s3://bucket/prefix.
func ParseBucket(text string) (Bucket, error) {
	rest, ok := strings.CutPrefix(text, "s3://")
	name, prefix, _ := strings.Cut(rest, "/")
	if !ok || name == "" || strings.ContainsAny(name, `@:?#%\ `) {
		return Bucket{}, fmt.Errorf("%q is not an address such as s3://bucket/prefix", text)
	}
	prefix = strings.Trim(prefix, "/")
	for part := range strings.SplitSeq(prefix, "/") {
		if prefix != "" && (part == "" || part == "." || part == "..") {
			return Bucket{}, fmt.Errorf("%q is not an address such as s3://bucket/prefix", text)
		}
	}
	if prefix != "" {
		prefix += "/"
	}
	return Bucket{Name: name, Prefix: prefix}, nil
}

// Check returns an error in the settings. It does not contact the server.
func (b Bucket) Check() error {
	_, err := newObjects(b)
	return err
}

const (
	dialTimeout = 5 * time.Second
	// stallTimeout is how long a request may make no progress. A file of 100 MiB may take longer as a whole.
	stallTimeout = 20 * time.Second
	// bucketAttempts is how often a request is tried before it is an outage.
	bucketAttempts = 3
	// maxResumes is how often the rest of a file is requested again after a broken connection.
	maxResumes = 3
)

var errStalled = errors.New("the storage made no progress")

// objects stores files in a bucket.
type objects struct {
	Bucket
	client    *minio.Core
	transport *http.Transport
	stall     time.Duration
}

func newObjects(b Bucket) (*objects, error) {
	b.Region = cmp.Or(b.Region, DefaultRegion)
	b.Endpoint = cmp.Or(b.Endpoint, "https://s3."+b.Region+".amazonaws.com")
	u, err := url.Parse(b.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("%q is not an address such as https://s3.example.com", b.Endpoint)
	}
	if err := s3utils.CheckValidBucketNameStrict(b.Name); err != nil {
		return nil, fmt.Errorf("%q is not the name of a bucket: %w", b.Name, err)
	}
	s := &objects{Bucket: b, stall: stallTimeout, transport: http.DefaultTransport.(*http.Transport).Clone()}
	s.transport.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	s.transport.ResponseHeaderTimeout = stallTimeout
	s.transport.MaxIdleConnsPerHost = 16
	s.transport.DisableCompression = true // a file is stored as it is
	s.client, err = minio.NewCore(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(b.AccessKey, b.SecretKey, ""),
		Secure: u.Scheme == "https", Region: b.Region, Transport: s.transport, MaxRetries: bucketAttempts,
	})
	return s, err
}

func (s *objects) close() { s.transport.CloseIdleConnections() }

// put uploads a draft in one request: an object appears whole or not at all, and no parts are left behind. The signature
// covers the content's hash, so the server rejects damaged content.
func (s *objects) put(ctx context.Context, name string, d *draft) error {
	hash := sha256.New()
	if err := rewind(d); err != nil {
		return fmt.Errorf("read media file: %w", err)
	}
	size, err := io.Copy(hash, d.File)
	if err != nil {
		return fmt.Errorf("read media file: %w", err)
	}
	ctx, watch := newWatch(ctx, s.stall)
	defer watch.end()
	body := &watchedBody{io.NewSectionReader(d.File, 0, size), watch}
	_, err = s.client.PutObject(ctx, s.Name, s.Prefix+name, body, size, "", hex.EncodeToString(hash.Sum(nil)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true})
	if err != nil {
		return s.classify(ctx, fmt.Errorf("store a file: %w", err))
	}
	return nil
}

func (s *objects) get(ctx context.Context, name string) (*File, error) {
	f := &object{s: s, ctx: ctx, name: s.Prefix + name}
	info, err := f.request()
	if err != nil {
		return nil, err
	}
	if info.Size < 0 {
		f.Close()
		return nil, unavailable(errors.New("the storage does not say how large the file is"))
	}
	f.etag, f.size = info.ETag, info.Size
	return &File{f, f.size}, nil
}

func (s *objects) remove(ctx context.Context, name string) error {
	ctx, watch := newWatch(ctx, s.stall)
	defer watch.end()
	err := s.client.RemoveObject(ctx, s.Name, s.Prefix+name, minio.RemoveObjectOptions{})
	if err = s.classify(ctx, err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *objects) list(ctx context.Context, prefix, after string, visit func(name string, changed time.Time) bool) error {
	ctx, watch := newWatch(ctx, s.stall)
	defer watch.end() // also ends the listing
	options := minio.ListObjectsOptions{Prefix: s.Prefix + prefix, Recursive: true}
	if after != "" {
		options.StartAfter = s.Prefix + after
	}
	for found := range s.client.ListObjectsIter(ctx, s.Name, options) {
		if found.Err != nil {
			return s.classify(ctx, fmt.Errorf("list files: %w", found.Err))
		}
		watch.progress()
		name := strings.TrimPrefix(found.Key, s.Prefix)
		if name > after && !visit(name, found.LastModified) {
			return nil
		}
	}
	return s.classify(ctx, ctx.Err())
}

// classify maps the errors of the client. A missing bucket is an outage, not a missing file.
func (s *objects) classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if response, ok := errors.AsType[minio.ErrorResponse](err); ok && response.Code == minio.NoSuchKey {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		err = fmt.Errorf("%w for %s: %w", errStalled, s.stall, err)
	}
	return unavailable(err)
}

// describe says why a bucket cannot be used.
func (s *objects) describe(err error) string {
	where := fmt.Sprintf("bucket %q at %s", s.Name, s.Endpoint)
	response, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		return fmt.Sprintf("The storage for files, %s, does not respond: %s. Check --media-endpoint and that the server runs.", where,
			s.reason(err))
	}
	switch response.Code {
	case minio.NoSuchBucket:
		return fmt.Sprintf("The storage for files, %s, was not found. Create the bucket, or set another one with --media.", where)
	case minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch:
		return fmt.Sprintf("The storage for files, %s, rejects the keys (%s). Check media_access_key and media_secret_key.", where, response.Code)
	case minio.AccessDenied:
		return fmt.Sprintf("The storage for files, %s, denies access. Allow these keys to list the bucket, and to read, write and delete "+
			"objects under %s", where, s)
	case minio.AuthorizationHeaderMalformed, minio.InvalidRegion, "PermanentRedirect", "IllegalLocationConstraintException":
		return fmt.Sprintf("The storage for files, %s, is in another region than %s. Set --media-region%s", where, s.Region,
			strings.TrimRight(" "+response.Region, " ")+".")
	case "RequestTimeTooSkewed":
		return fmt.Sprintf("The storage for files, %s, rejects the time of this machine. Correct the clock.", where)
	}
	return fmt.Sprintf("The storage for files, %s, does not work: %s (%s, status %d).", where, response.Message, response.Code,
		response.StatusCode)
}

// reason is the shortest text of an error without a response.
func (s *objects) reason(err error) string {
	if errors.Is(err, errStalled) {
		return fmt.Sprintf("no progress for %s", s.stall)
	}
	return innermost(err)
}

// object is a file of a bucket that is being read. After a broken connection it requests the rest.
type object struct {
	s    *objects
	ctx  context.Context
	name string
	etag string // of the first response; a file that was replaced meanwhile is an error
	size int64
	at   int64 // the next byte

	body    io.ReadCloser
	reading context.Context // of body
	watch   *watch
	resumes int
}

// request requests the file from the next byte on.
func (f *object) request() (minio.ObjectInfo, error) {
	ctx, watch := newWatch(f.ctx, f.s.stall)
	options := minio.GetObjectOptions{}
	var err error
	if f.at > 0 {
		err = options.SetRange(f.at, 0)
	}
	if f.etag != "" {
		err = errors.Join(err, options.SetMatchETag(f.etag))
	}
	if err != nil {
		watch.end()
		return minio.ObjectInfo{}, fmt.Errorf("read a file: %w", err)
	}
	body, info, header, err := f.s.client.GetObject(ctx, f.s.Name, f.name, options)
	if err == nil && f.at > 0 && !strings.HasPrefix(header.Get("Content-Range"), fmt.Sprintf("bytes %d-", f.at)) {
		body.Close()
		err = errors.New("the storage ignores ranges")
	}
	if err != nil {
		watch.end()
		return info, f.s.classify(ctx, fmt.Errorf("read a file: %w", err))
	}
	watch.pause()
	f.body, f.reading, f.watch = body, ctx, watch
	return info, nil
}

// Read reads on. Only a file that is whole ends with io.EOF.
func (f *object) Read(p []byte) (int, error) {
	for {
		if f.at >= f.size {
			return 0, io.EOF
		}
		if f.body == nil {
			if _, err := f.request(); err != nil {
				return 0, err
			}
		}
		f.watch.progress()
		n, err := f.body.Read(p)
		f.watch.pause()
		f.at += int64(n)
		if err == nil || f.at >= f.size {
			return n, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		err = f.s.classify(f.reading, fmt.Errorf("read a file: %w", err))
		f.drop()
		if f.resumes++; f.resumes > maxResumes || f.ctx.Err() != nil {
			return n, err
		}
		if n > 0 {
			return n, nil // the next call requests the rest
		}
	}
}

func (f *object) drop() {
	if f.body != nil {
		f.body.Close()
		f.watch.end()
		f.body = nil
	}
}

// Close ends the download.
func (f *object) Close() error {
	f.drop()
	f.at = f.size
	return nil
}

// watch cancels a context when nothing happens for a while.
type watch struct {
	timer  *time.Timer
	after  time.Duration
	cancel context.CancelCauseFunc
}

func newWatch(parent context.Context, after time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, &watch{time.AfterFunc(after, func() { cancel(errStalled) }), after, cancel}
}

func (w *watch) progress() { w.timer.Reset(w.after) }

// pause stops the time while the caller does something else.
func (w *watch) pause() { w.timer.Stop() }

// end releases the context.
func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// watchedBody is the body of an upload. Reading it is progress.
type watchedBody struct {
	*io.SectionReader
	watch *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.progress()
	return b.SectionReader.Read(p)
}
