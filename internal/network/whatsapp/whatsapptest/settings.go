package whatsapptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/store"
	waLog "go.mau.fi/whatsmeow/util/log"
	"google.golang.org/protobuf/proto"
)

// phoneSettings are the keys of the account's settings and the versions that the phone has read. They are the store of
// its processor. Guarded by Phone.mu.
type phoneSettings struct {
	store.NoopStore // methods that the processor does not call

	keyID    []byte
	key      store.AppStateSyncKey
	proc     *appstate.Processor
	versions map[string]settingVersion
	macs     map[string][]byte
	seen     []appstate.Mutation
}

// settings returns the state of the phone's settings, made at first use. The caller holds the phone's lock.
func (p *Phone) settings() *phoneSettings {
	if p.state == nil {
		st := &phoneSettings{
			keyID: random(6), key: store.AppStateSyncKey{Data: random(32), Timestamp: unix() * 1000},
			versions: map[string]settingVersion{}, macs: map[string][]byte{},
		}
		st.proc = appstate.NewProcessor(&store.Device{AppStateKeys: st, AppState: st}, waLog.Noop)
		p.state = st
	}
	return p.state
}

// Change changes a setting, such as appstate.BuildArchive makes, and notifies the linked clients.
func (p *Phone) Change(ctx context.Context, patch appstate.PatchInfo) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.change(ctx, patch, true)
}

func (p *Phone) change(ctx context.Context, patch appstate.PatchInfo, tell bool) error {
	if err := p.catchUp(ctx, string(patch.Type)); err != nil {
		return err
	}
	st := p.settings()
	v := st.versions[string(patch.Type)]
	raw, err := st.proc.EncodePatch(ctx, st.keyID, appstate.HashState{Version: v.version, Hash: v.hash}, patch)
	if err != nil {
		return fmt.Errorf("encode a change of settings: %w", err)
	}
	s := p.server
	s.mu.Lock()
	col := p.account.collection(string(patch.Type))
	if col.version() != v.version {
		s.mu.Unlock()
		return errors.New("a client changed the settings at the same moment")
	}
	err = s.addPatch(p.main.device, col, raw, tell)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("store a change of settings: %w", err)
	}
	return p.catchUp(ctx, string(patch.Type))
}

func (p *Phone) AwaitSetting(ctx context.Context, match func(appstate.Mutation) bool) (appstate.Mutation, error) {
	var failed error
	m, err := await(ctx, &p.changed, func() (appstate.Mutation, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, name := range appstate.AllPatchNames {
			if failed = p.catchUp(ctx, string(name)); failed != nil {
				return appstate.Mutation{}, true
			}
		}
		if i := slices.IndexFunc(p.settings().seen, match); i >= 0 {
			return p.settings().seen[i], true
		}
		return appstate.Mutation{}, false
	})
	return m, errors.Join(err, failed)
}

// catchUp reads and verifies the patches that the phone has not seen. The caller holds the phone's lock.
func (p *Phone) catchUp(ctx context.Context, name string) error {
	st := p.settings()
	v := st.versions[name]
	s := p.server
	s.mu.Lock()
	var raw [][]byte
	if c := p.account.collection(name); v.version < c.version() {
		raw = slices.Clone(c.patches[v.version:])
	}
	s.mu.Unlock()
	if len(raw) == 0 {
		return nil
	}
	list := &appstate.PatchList{Name: appstate.WAPatchName(name)}
	for _, r := range raw {
		patch := new(waServerSync.SyncdPatch)
		if err := proto.Unmarshal(r, patch); err != nil {
			return fmt.Errorf("read a change of settings: %w", err)
		}
		list.Patches = append(list.Patches, patch)
	}
	mutations, _, err := st.proc.DecodePatches(ctx, list, appstate.HashState{Version: v.version, Hash: v.hash}, true)
	if err != nil {
		return fmt.Errorf("verify a change of settings: %w", err)
	}
	st.seen = append(st.seen, mutations...)
	return nil
}

type settingVersion struct {
	version uint64
	hash    [128]byte
}

func (st *phoneSettings) PutAppStateVersion(_ context.Context, name string, version uint64, hash [128]byte) error {
	st.versions[name] = settingVersion{version, hash}
	return nil
}

func (st *phoneSettings) GetAppStateVersion(_ context.Context, name string) (uint64, [128]byte, error) {
	v := st.versions[name]
	return v.version, v.hash, nil
}

func macKey(name string, index []byte) string { return name + " " + string(index) }

func (st *phoneSettings) PutAppStateMutationMACs(_ context.Context, name string, _ uint64, macs []store.AppStateMutationMAC) error {
	for _, m := range macs {
		st.macs[macKey(name, m.IndexMAC)] = m.ValueMAC
	}
	return nil
}

func (st *phoneSettings) DeleteAppStateMutationMACs(_ context.Context, name string, indexes [][]byte) error {
	for _, i := range indexes {
		delete(st.macs, macKey(name, i))
	}
	return nil
}

func (st *phoneSettings) GetAppStateMutationMAC(_ context.Context, name string, index []byte) ([]byte, error) {
	return st.macs[macKey(name, index)], nil
}

func (st *phoneSettings) GetAppStateSyncKey(_ context.Context, id []byte) (*store.AppStateSyncKey, error) {
	if !slices.Equal(id, st.keyID) {
		return nil, nil
	}
	return &st.key, nil
}

// collection is one list of encrypted changes to an account's settings, which the server cannot read.
// Guarded by Server.mu.
type collection struct {
	name    string
	patches [][]byte // the version of a patch is its position, from 1
}

func (c *collection) version() uint64 { return uint64(len(c.patches)) }

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

// appState handles a client that fetches or changes settings. The caller holds the lock.
func (s *Server) appState(c *conn, d *device, q *node) {
	sync := q.GetChildByTag("sync")
	var answers []node
	for _, asked := range sync.GetChildrenByTag("collection") {
		answers = append(answers, s.syncCollection(d, &asked))
	}
	c.reply(q, n("sync", nil, answers...))
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

// addPatch numbers and stores a patch, and may notify the other devices of the account. The caller holds the lock.
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
			s.notify(d, from.owner.pnJID(0), "server_sync", nil, n("collection", attrs{"name": col.name, "version": col.version()}))
		}
	}
	if from.sim == nil {
		from.owner.phone.changed.notify()
	}
	return nil
}
