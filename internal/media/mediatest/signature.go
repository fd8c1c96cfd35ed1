package mediatest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const unsigned = "UNSIGNED-PAYLOAD"

// verify checks the signature of a request (AWS Signature Version 4), and the hash of its body if it is signed.
func (s *Server) verify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			refuse(w, http.StatusBadRequest, "IncompleteBody", err.Error())
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if status, code := check(r, body); code != "" {
			refuse(w, status, code, "rejected by the test server")
			return
		}
		s.mu.Lock()
		s.verified++
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// check returns the code of S3 for what is wrong with a request.
func check(r *http.Request, body []byte) (status int, code string) {
	fields, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return http.StatusForbidden, "AccessDenied"
	}
	given := map[string]string{}
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		given[name] = value
	}
	scope := strings.Split(given["Credential"], "/") // key, day, region, service, aws4_request
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", stamp)
	hash := r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case len(scope) != 5 || err != nil || scope[1] != stamp[:8] || scope[3] != "s3":
		return http.StatusBadRequest, "AuthorizationHeaderMalformed"
	case scope[0] != AccessKey:
		return http.StatusForbidden, "InvalidAccessKeyId"
	case scope[2] != Region:
		return http.StatusBadRequest, "AuthorizationHeaderMalformed"
	case time.Since(at).Abs() > 15*time.Minute:
		return http.StatusForbidden, "RequestTimeTooSkewed"
	case !hmac.Equal([]byte(given["Signature"]), []byte(signature(r, scope, stamp, hash, given["SignedHeaders"]))):
		return http.StatusForbidden, "SignatureDoesNotMatch"
	}
	if sum := sha256.Sum256(body); hash != unsigned && hash != hex.EncodeToString(sum[:]) {
		return http.StatusBadRequest, "XAmzContentSHA256Mismatch"
	}
	return 0, ""
}

func signature(r *http.Request, scope []string, stamp, hash, signedHeaders string) string {
	var headers strings.Builder
	for name := range strings.SplitSeq(signedHeaders, ";") {
		value := strings.Join(r.Header.Values(name), ",")
		switch name { // the HTTP server moves them out of the header
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	path := (&url.URL{Path: r.URL.Path}).EscapedPath()
	canonical := strings.Join([]string{r.Method, path, query, headers.String(), signedHeaders, hash}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", stamp, strings.Join(scope[1:], "/"), hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + SecretKey)
	for _, part := range scope[1:] {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
