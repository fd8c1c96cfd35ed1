package media

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"parley/internal/wait"
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

// prefixForm allows what every S3 server encodes in the same way in a signature.
var prefixForm = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)

// ParseBucket parses s3://bucket/prefix.
func ParseBucket(text string) (Bucket, error) {
	rest, ok := strings.CutPrefix(text, "s3://")
	name, prefix, _ := strings.Cut(rest, "/")
	if !ok || name == "" || strings.ContainsAny(name, `@:?#%\ `) {
		return Bucket{}, fmt.Errorf("%q is not an address such as s3://bucket/prefix", text)
	}
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return Bucket{Name: name}, nil
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "." || part == ".." || !prefixForm.MatchString(part) {
			return Bucket{}, fmt.Errorf("%q is not an address such as s3://bucket/prefix, with letters, digits and . _ - only", text)
		}
	}
	return Bucket{Name: name, Prefix: prefix + "/"}, nil
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
	// bucketPause is the first pause between two attempts. It doubles.
	bucketPause = 200 * time.Millisecond
	// bucketAttempts is how often a request is tried before it is an outage.
	bucketAttempts = 3
	// maxResumes is how often the rest of a file is requested again after a broken connection.
	maxResumes   = 3
	maxErrorBody = 64 << 10
)

var errStalled = errors.New("the storage made no progress")

// bucketForm is what S3 allows as the name of a bucket.
var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// objects stores files in a bucket. It needs four requests of S3, so it makes them itself: a client library for all of S3
// costs megabytes of memory and of the binary.
type objects struct {
	Bucket
	base      url.URL // of the bucket
	client    *http.Client
	transport *http.Transport
	signer    *v4.Signer
	stall     time.Duration
}

func newObjects(b Bucket) (*objects, error) {
	b.Region = cmp.Or(b.Region, DefaultRegion)
	if !bucketForm.MatchString(b.Name) || strings.Contains(b.Name, "..") {
		return nil, fmt.Errorf("%q is not the name of a bucket", b.Name)
	}
	amazon := b.Endpoint == ""
	b.Endpoint = cmp.Or(b.Endpoint, "https://s3."+b.Region+".amazonaws.com")
	u, err := url.Parse(b.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an address such as https://s3.example.com", b.Endpoint)
	}
	s := &objects{Bucket: b, stall: stallTimeout, transport: http.DefaultTransport.(*http.Transport).Clone()}
	s.base = url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + b.Name + "/"}
	if amazon && !strings.Contains(b.Name, ".") { // a name with a dot does not match Amazon's certificate
		s.base.Host, s.base.Path = b.Name+"."+u.Host, "/"
	}
	s.transport.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	s.transport.MaxIdleConnsPerHost = 16
	s.transport.DisableCompression = true // a file is stored as it is
	s.client = &http.Client{Transport: s.transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the signature is for one host
	}}
	s.signer = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // as S3 wants it
	return s, nil
}

// call is one request to the bucket.
type call struct {
	method string
	name   string // of the object; empty: the bucket
	query  url.Values
	header http.Header
	body   func() io.Reader // makes the body of each attempt: the transport may still read that of the last one
	size   int64            // of the body
	sum    string           // SHA-256 of the body in hex; empty: no body
}

// emptySum is the SHA-256 of nothing.
const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// do sends a request and tries again after an error that may pass. The response has a status of success. Its body must be
// closed.
func (s *objects) do(ctx context.Context, c call) (*http.Response, error) {
	var err error
	for attempt := range bucketAttempts {
		if attempt > 0 && !wait.Sleep(ctx, bucketPause/2+rand.N(bucketPause<<attempt)) {
			break
		}
		var resp *http.Response
		if resp, err = s.try(ctx, c); err == nil {
			return resp, nil
		}
		if rejected, ok := errors.AsType[*responseError](err); ctx.Err() != nil || ok && !rejected.mayPass() {
			break
		}
	}
	return nil, errors.Join(err, ctx.Err())
}

// try sends a request once.
func (s *objects) try(ctx context.Context, c call) (*http.Response, error) {
	address := s.base
	address.Path += c.name
	address.RawQuery = strings.ReplaceAll(c.query.Encode(), "+", "%20")
	var body io.Reader = http.NoBody
	if c.size > 0 {
		body = c.body()
	}
	r, err := http.NewRequestWithContext(ctx, c.method, address.String(), body)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, c.header)
	r.ContentLength = c.size
	sum := cmp.Or(c.sum, emptySum)
	r.Header.Set("X-Amz-Content-Sha256", sum)
	keys := aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey}
	if err := s.signer.SignHTTP(ctx, keys, r, sum, "s3", s.Region, time.Now()); err != nil {
		return nil, fmt.Errorf("sign a request: %w", err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readError(resp)
}

// responseError is an error that the server sent.
type responseError struct {
	Status  int    `xml:"-"`
	Code    string // of S3; empty: the response is not of an S3 server
	Message string
	Region  string // where the bucket is, if it is elsewhere
}

func (e *responseError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the storage responded with status %d %s %s", e.Status, e.Code, e.Message))
}

// mayPass reports whether the same request may succeed soon.
func (e *responseError) mayPass() bool {
	return e.Status >= 500 && e.Status != http.StatusNotImplemented || e.Status == http.StatusTooManyRequests ||
		e.Status == http.StatusRequestTimeout || e.Code == "RequestTimeout"
}

func readError(resp *http.Response) error {
	e := &responseError{Status: resp.StatusCode}
	_ = xml.NewDecoder(io.LimitReader(resp.Body, maxErrorBody)).Decode(e) // of a proxy, it may be anything
	e.Region = cmp.Or(e.Region, resp.Header.Get("X-Amz-Bucket-Region"))
	return e
}

func (s *objects) close() { s.transport.CloseIdleConnections() }

// put uploads a draft in one request: an object appears whole or not at all, and no parts are left behind. The signature
// covers the content's hash, so the server rejects damaged content.
func (s *objects) put(ctx context.Context, name string, d *draft) error {
	sum, size, err := d.hash()
	if err != nil {
		return err
	}
	ctx, watch := newWatch(ctx, s.stall)
	defer watch.end()
	body := func() io.Reader { return &watchedBody{io.NewSectionReader(d.File, 0, size), watch} }
	resp, err := s.do(ctx, call{method: http.MethodPut, name: s.Prefix + name, body: body, size: size, sum: hex.EncodeToString(sum),
		header: http.Header{"Content-Type": {"application/octet-stream"}}})
	if err != nil {
		return s.classify(ctx, fmt.Errorf("store a file: %w", err))
	}
	resp.Body.Close()
	return nil
}

func (s *objects) get(ctx context.Context, name string) (*File, error) {
	f := &object{s: s, ctx: ctx, name: s.Prefix + name}
	resp, err := f.request()
	if err != nil {
		return nil, err
	}
	if resp.ContentLength < 0 {
		f.Close()
		return nil, unavailable(errors.New("the storage does not say how large the file is"))
	}
	f.etag, f.size = resp.Header.Get("ETag"), resp.ContentLength
	return &File{f, f.size}, nil
}

// has lists the file: unlike the response to a HEAD, a list tells a missing file from a missing bucket.
func (s *objects) has(ctx context.Context, name string) (found bool, err error) {
	err = s.list(ctx, name, "", func(string, time.Time) bool {
		found = true // a longer name is no key
		return false
	})
	return found, err
}

func (s *objects) remove(ctx context.Context, name string) error {
	ctx, watch := newWatch(ctx, s.stall)
	defer watch.end()
	resp, err := s.do(ctx, call{method: http.MethodDelete, name: s.Prefix + name})
	if err != nil {
		if err = s.classify(ctx, fmt.Errorf("remove a file: %w", err)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	resp.Body.Close()
	return nil
}

func (s *objects) list(ctx context.Context, prefix, after string, visit func(name string, changed time.Time) bool) error {
	ctx, watch := newWatch(ctx, s.stall)
	defer watch.end() // also ends the listing
	for cursor := ""; ; {
		page, err := s.page(ctx, prefix, after, cursor)
		if err != nil {
			return s.classify(ctx, fmt.Errorf("list files: %w", err))
		}
		watch.progress()
		for _, found := range page.Contents {
			if name := strings.TrimPrefix(found.Key, s.Prefix); name > after && !visit(name, found.LastModified) {
				return nil
			}
		}
		if !page.IsTruncated || page.NextContinuationToken == "" {
			return nil
		}
		cursor = page.NextContinuationToken
	}
}

// objectPage is a page of a list of objects.
type objectPage struct {
	Contents []struct {
		Key          string
		LastModified time.Time
	}
	IsTruncated           bool
	NextContinuationToken string
}

func (s *objects) page(ctx context.Context, prefix, after, cursor string) (page objectPage, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {s.Prefix + prefix}}
	if cursor != "" {
		query.Set("continuation-token", cursor)
	} else if after != "" {
		query.Set("start-after", s.Prefix+after)
	}
	resp, err := s.do(ctx, call{method: http.MethodGet, query: query})
	if err != nil {
		return page, err
	}
	defer resp.Body.Close()
	return page, xml.NewDecoder(resp.Body).Decode(&page)
}

// classify maps the errors of the client. A missing bucket is an outage, not a missing file.
func (s *objects) classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if response, ok := errors.AsType[*responseError](err); ok && response.Code == "NoSuchKey" {
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
	response, ok := errors.AsType[*responseError](err)
	if !ok {
		return fmt.Sprintf("The storage for files, %s, does not respond: %s. Check --media-endpoint and that the server runs.", where,
			s.reason(err))
	}
	switch response.Code {
	case "NoSuchBucket":
		return fmt.Sprintf("The storage for files, %s, was not found. Create the bucket, or set another one with --media.", where)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return fmt.Sprintf("The storage for files, %s, rejects the keys (%s). Check media_access_key and media_secret_key.", where, response.Code)
	case "AccessDenied":
		return fmt.Sprintf("The storage for files, %s, denies access. Allow these keys to list the bucket, and to read, write and delete "+
			"objects under %s", where, s)
	case "AuthorizationHeaderMalformed", "InvalidRegion", "PermanentRedirect", "IllegalLocationConstraintException":
		return fmt.Sprintf("The storage for files, %s, is in another region than %s. Set --media-region%s", where, s.Region,
			strings.TrimRight(" "+response.Region, " ")+".")
	case "RequestTimeTooSkewed":
		return fmt.Sprintf("The storage for files, %s, rejects the time of this machine. Correct the clock.", where)
	}
	if response.Code == "" {
		return fmt.Sprintf("The storage for files, %s, does not respond as an S3 server does (status %d). Check --media-endpoint.", where,
			response.Status)
	}
	return fmt.Sprintf("The storage for files, %s, does not work: %s (%s, status %d).", where, response.Message, response.Code,
		response.Status)
}

// reason is the shortest text of an error without a response.
func (s *objects) reason(err error) string {
	if errors.Is(err, errStalled) {
		return fmt.Sprintf("no progress for %s", s.stall)
	}
	return Innermost(err)
}
