package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Folders of the storage beside those of files.
const (
	probeFolder  = "nodes/" // a file for each node that uses the storage
	checkFolder  = "check/" // files of checks in progress
	ownerFile    = "installation"
	maxProbe     = 1 << 10
	checkTimeout = 15 * time.Second
)

// String says where the files are, without secrets.
func (l *Library) String() string { return l.files.String() }

// Check writes, reads, lists and removes a small file. If the storage cannot be used, it returns an [Error] whose sentence
// says why. It rejects a storage of another installation.
func (l *Library) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := l.check(ctx); err != nil {
		if ours, ok := errors.AsType[*Error](err); ok {
			return ours
		}
		return &Error{l.files.describe(err), err}
	}
	return nil
}

func (l *Library) check(ctx context.Context) error {
	if err := l.checkOwner(ctx); err != nil {
		return err
	}
	name := checkFolder + NewKey()
	content := []byte(name)
	if err := l.write(ctx, name, content); err != nil {
		return err
	}
	read, err := l.read(ctx, name)
	if err == nil && !bytes.Equal(read, content) {
		err = errors.New("a file that was stored reads differently")
	}
	listed := false
	if err == nil {
		err = l.files.list(ctx, name, "", func(found string, _ time.Time) bool {
			listed = listed || found == name
			return true
		})
	}
	if err == nil && !listed {
		err = errors.New("a file that was stored is not listed")
	}
	return errors.Join(err, l.files.remove(ctx, name))
}

// checkOwner makes the first installation that uses the storage its owner.
func (l *Library) checkOwner(ctx context.Context) error {
	ours := l.config.Installation
	if len(ours) == 0 {
		return nil
	}
	owner, err := l.read(ctx, ownerFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.write(ctx, ownerFile, []byte(ours[0]))
	case err != nil:
		return err
	case strings.TrimSpace(string(owner)) == ours[0]:
		return nil
	case slices.Contains(ours, strings.TrimSpace(string(owner))): // the key was rotated, and the older one may be removed soon
		return l.write(ctx, ownerFile, []byte(ours[0]))
	}
	return errorf("The files in %s belong to another installation: it was started with another secret.key. Set another place with "+
		"--media: each installation needs its own.", l)
}

// write stores a small file.
func (l *Library) write(ctx context.Context, name string, content []byte) error {
	d, err := l.newDraft()
	if err != nil {
		return err
	}
	defer d.discard()
	if _, err := d.Write(content); err != nil {
		return fmt.Errorf("write media file: %w", err)
	}
	return l.files.put(ctx, name, d)
}

// read reads a small file.
func (l *Library) read(ctx context.Context, name string) ([]byte, error) {
	f, err := l.files.get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxProbe))
}

var nodeForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$`)

// CheckShared writes a probe file named for this node, and reads those of other nodes. It returns the nodes whose probe
// is not in this storage: they use another one, and their files cannot be read here. Each node calls it when it joins,
// before the others can know its name. A name must never be used again. Probes of nodes that are neither this one nor
// among the others are removed after a day.
func (l *Library) CheckShared(ctx context.Context, node string, others []string) (apart []string, err error) {
	own, err := probeName(node)
	if err != nil {
		return nil, err
	}
	if err := l.write(ctx, own, []byte(node)); err != nil {
		return nil, err
	}
	for _, other := range others {
		name, err := probeName(other)
		if err != nil {
			return nil, err
		}
		content, err := l.read(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && string(content) != other:
			apart = append(apart, other)
		case err != nil:
			return nil, err
		}
	}
	return apart, l.removeOldProbes(ctx, append(slices.Clone(others), node))
}

func probeName(node string) (string, error) {
	if !nodeForm.MatchString(node) {
		return "", fmt.Errorf("%q is not the name of a node", node)
	}
	return probeFolder + node, nil
}

// removeOldProbes removes probes of nodes that are gone. The newest probe tells the time of the storage's clock.
func (l *Library) removeOldProbes(ctx context.Context, nodes []string) error {
	changed, now := map[string]time.Time{}, time.Time{}
	err := l.files.list(ctx, probeFolder, "", func(name string, at time.Time) bool {
		changed[name] = at
		if at.After(now) {
			now = at
		}
		return true
	})
	if err != nil {
		return err
	}
	for name, at := range changed {
		if !slices.Contains(nodes, strings.TrimPrefix(name, probeFolder)) && now.Sub(at) > abandonedAfter {
			if err := l.files.remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
