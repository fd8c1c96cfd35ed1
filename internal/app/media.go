package app

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"parley/internal/doctor"
	"parley/internal/media"
)

// Media says where the files of messages are stored.
type Media struct {
	// Location is a directory or s3://bucket/prefix; empty: a folder of the data directory.
	Location string
	// Endpoint is the URL of an S3 server; empty: Amazon's in Region. An empty Region is us-east-1.
	Endpoint, Region string
	// AccessKey and SecretKey are for the bucket. Never log SecretKey.
	AccessKey, SecretKey string
}

// mediaConfig checks the settings of the storage.
func (c Config) mediaConfig() (media.Config, error) {
	m := c.Media
	own := media.Config{Dir: c.DataDir.Media()}
	if !strings.HasPrefix(m.Location, "s3://") {
		switch {
		case m.Endpoint != "":
			return own, configErrorf("--media-endpoint is for a bucket. Set --media s3://BUCKET, or remove --media-endpoint.")
		case strings.Contains(m.Location, "://"):
			return own, configErrorf("--media: %q is neither a directory nor an address such as s3://bucket/prefix.", m.Location)
		case m.Location == "", isSamePath(m.Location, own.Dir):
			return own, nil
		case isSamePath(m.Location, string(c.DataDir)):
			return own, configErrorf("--media: %s is the data directory. Give a directory for files only.", m.Location)
		}
		return media.Config{Dir: filepath.Clean(m.Location), Shared: true}, nil
	}
	b, err := media.ParseBucket(m.Location)
	if err != nil {
		return own, configErrorf("--media: %v.", err)
	}
	if m.AccessKey == "" || m.SecretKey == "" {
		return own, configErrorf("A bucket needs keys. Set --media-access-key-file and --media-secret-key-file, or " +
			"PARLEY_MEDIA_ACCESS_KEY and PARLEY_MEDIA_SECRET_KEY.")
	}
	b.Endpoint, b.Region, b.AccessKey, b.SecretKey = m.Endpoint, m.Region, m.AccessKey, m.SecretKey
	if err := b.Check(); err != nil {
		return own, configErrorf("The settings of --media %s cannot be used: %v.", m.Location, err)
	}
	own.Bucket = &b
	return own, nil
}

func isSamePath(a, b string) bool {
	first, err := filepath.Abs(a)
	second, other := filepath.Abs(b)
	return err == nil && other == nil && first == second
}

// MediaElsewhere is where the files are if that is not the data directory; else empty. They are not part of a backup then.
func (c Config) MediaElsewhere() string {
	config, err := c.mediaConfig()
	switch {
	case err != nil:
		return c.Media.Location
	case config.Bucket != nil:
		return config.Bucket.String()
	case config.Shared:
		return config.Dir
	}
	return ""
}

// openMedia opens the storage of files. A server does not start if it cannot be used; a command needs it rarely.
func (s *server) openMedia(ctx context.Context) error {
	config, err := s.cfg.mediaConfig()
	if err != nil && !s.offline { // a command may not know the keys; files that it does not remove become orphans
		return err
	}
	elsewhere := config.Shared || config.Bucket != nil
	if elsewhere {
		for _, key := range s.data.Keyring.Derive("media installation") {
			config.Installation = append(config.Installation, hex.EncodeToString(key[:16]))
		}
	}
	config.Store, config.Limits = s.data.Store, s.cfg.Storage.OrDefault()
	s.media, err = media.Open(config, s.callerAddresses)
	if err == nil && elsewhere && !s.offline {
		err = s.media.Check(ctx)
	}
	if problem, ok := errors.AsType[*media.Error](err); ok {
		return &DataError{problem.Sentence}
	}
	return err
}

// openFile opens a file for a network.
func (s *server) openFile(ctx context.Context, key string) (io.ReadCloser, error) {
	f, err := s.media.Open(ctx, key)
	if err != nil {
		return nil, err // f is not nil as an interface
	}
	return f, nil
}

// mediaCheckTime limits the check of the storage within a request.
const mediaCheckTime = 5 * time.Second

// examineMedia checks the room for files, and their storage if it is not the data directory.
func (c Config) examineMedia(ctx context.Context, library *media.Library) []doctor.Finding {
	var findings []doctor.Finding
	if free, least, ok := library.Free(); ok {
		findings = doctor.FilesDisk(free, least)
	}
	where := c.MediaElsewhere()
	if where == "" {
		return findings
	}
	ctx, cancel := context.WithTimeout(ctx, mediaCheckTime)
	defer cancel()
	return append(findings, doctor.Media(where, c.Media.Endpoint, library.Check(ctx)))
}

// examineMediaOffline does the same without a server.
func (c Config) examineMediaOffline(ctx context.Context, data *Data) []doctor.Finding {
	if c.MediaElsewhere() == "" {
		return nil
	}
	s := &server{cfg: c, data: data, offline: true}
	if err := s.openMedia(ctx); err != nil {
		return []doctor.Finding{doctor.Media(c.MediaElsewhere(), c.Media.Endpoint, err)}
	}
	defer s.media.Close()
	return c.examineMedia(ctx, s.media)
}
