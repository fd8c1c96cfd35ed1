package whatsapptest

import (
	"strconv"

	"go.mau.fi/whatsmeow/proto/waServerSync"
	"google.golang.org/protobuf/proto"
)

// collection is one list of encrypted changes to an account's settings, which the server cannot read.
// Guarded by Server.mu.
type collection struct {
	name    string
	patches [][]byte // the version of a patch is its position, from 1
}

func (c *collection) version() uint64 { return uint64(len(c.patches)) }

// since lists the patches after a version.
func (c *collection) since(version uint64) []node {
	if version >= c.version() {
		return nil
	}
	var all []node
	for _, p := range c.patches[version:] {
		all = append(all, leaf("patch", p))
	}
	return []node{n("patches", nil, all...)}
}

// collection finds or makes a collection. The caller holds the server's lock.
func (a *account) collection(name string) *collection {
	c := a.collections[name]
	if c == nil {
		c = &collection{name: name}
		a.collections[name] = c
	}
	return c
}

// appState answers a client that fetches or changes settings. The caller holds the lock.
func (s *Server) appState(c *conn, d *device, q *node) {
	sync := q.GetChildByTag("sync")
	var answers []node
	for _, asked := range sync.GetChildrenByTag("collection") {
		answers = append(answers, s.syncCollection(d, &asked))
	}
	s.reply(c, q, n("sync", nil, answers...))
}

func (s *Server) syncCollection(d *device, asked *node) node {
	name := str(asked, "name")
	known, _ := strconv.ParseUint(str(asked, "version"), 10, 64)
	col := d.owner.collection(name)
	out := attrs{"name": name}
	patch, change := asked.GetOptionalChildByTag("patch")
	if !change {
		out["version"] = col.version()
		return n("collection", out, col.since(known)...)
	}
	if known != col.version() {
		out["version"], out["type"] = col.version(), "error"
		return n("collection", out, append([]node{n("error", attrs{"code": 409, "text": "conflict"})}, col.since(known)...)...)
	}
	if err := s.addPatch(d, col, content(patch), true); err != nil {
		s.violateLocked("settings that are no patch")
		out["version"], out["type"] = col.version(), "error"
		return n("collection", out, n("error", attrs{"code": 400, "text": "bad-request"}))
	}
	out["version"] = col.version()
	return n("collection", out)
}

// addPatch gives a patch its version, keeps it, and may tell the other devices of the account. The caller
// holds the lock.
func (s *Server) addPatch(from *device, col *collection, raw []byte, tell bool) error {
	var p waServerSync.SyncdPatch
	if err := proto.Unmarshal(raw, &p); err != nil {
		return err
	}
	p.Version = &waServerSync.SyncdVersion{Version: proto.Uint64(col.version() + 1)}
	numbered, err := proto.Marshal(&p)
	if err != nil {
		return err
	}
	col.patches = append(col.patches, numbered)
	for _, d := range from.owner.devices {
		if tell && d.sim == nil && d != from {
			s.notify(d, from.owner.pn(0), "server_sync", nil, n("collection", attrs{"name": col.name, "version": col.version()}))
		}
	}
	if from.sim == nil {
		from.owner.phone.news.ring()
	}
	return nil
}
