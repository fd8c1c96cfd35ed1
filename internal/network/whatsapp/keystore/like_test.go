package keystore

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	waLog "go.mau.fi/whatsmeow/util/log"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// TestLikeTheirs does the same things to this store and to whatsmeow's own, and compares every answer. It does
// so twice, the second time after both were opened again, so that nothing is answered from memory alone.
func TestLikeTheirs(t *testing.T) {
	dir := t.TempDir()
	var was [2][]string
	for round := range 2 {
		ours := open(t, filepath.Join(dir, "ours.db"))
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir,
			"theirs.db")+"?_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_txlock=immediate")
		must(t, err)
		theirs := sqlstore.NewWithDB(db, "sqlite", waLog.Noop)
		must(t, theirs.Upgrade(t.Context()))
		for i, d := range []*store.Device{likeDevice(t, ours.NewDevice(), ours.Device),
			likeDevice(t, theirs.NewDevice(), theirs.GetDevice)} {
			was[i] = append(was[i], doEverything(t, d, round)...)
		}
		must(t, ours.Close())
		must(t, theirs.Close())
	}
	if len(was[0]) != len(was[1]) || len(was[0]) < 100 {
		t.Fatalf("%d and %d answers", len(was[0]), len(was[1]))
	}
	for i := range was[0] {
		if was[0][i] != was[1][i] {
			t.Errorf("ours:   %s\ntheirs: %s", was[0][i], was[1][i])
		}
	}
}

func likeDevice(t *testing.T, d *store.Device, get func(context.Context, types.JID) (*store.Device, error)) *store.Device {
	t.Helper()
	if is, err := get(t.Context(), number); err != nil || is != nil {
		must(t, err)
		return is
	}
	jid := number
	d.ID, d.LID, d.RegistrationID = &jid, types.JID{User: "1001", Server: types.HiddenUserServer, Device: 3}, 4_000_000_000
	d.Account = &waAdv.ADVSignedDeviceIdentity{Details: []byte("details"), AccountSignature: make([]byte, 64),
		AccountSignatureKey: make([]byte, 32), DeviceSignature: make([]byte, 64)}
	must(t, d.Save(t.Context()))
	d.PushName, d.LIDMigrationTimestamp = "Shop", 7
	must(t, d.Save(t.Context()))
	is, err := get(t.Context(), number)
	must(t, err)
	return is
}

// doEverything calls every method of the stores of a device and returns what they answered.
func doEverything(t *testing.T, d *store.Device, round int) []string {
	r := &storeRun{t: t, ctx: t.Context(), d: d, round: round}
	r.note("device", d.ID, d.LID, d.RegistrationID, d.PushName, d.LIDMigrationTimestamp, d.Account.GetDetails(),
		len(d.Account.GetDeviceSignature()), d.SignedPreKey.KeyID, d.Initialized)
	for _, do := range []func(){
		r.doIdentities, r.doSessions, r.doPreKeys, r.doAppStateKeys, r.doAppState, r.doContacts, r.doLIDs,
		r.doMsgSecrets, r.doPrivacyTokens, r.doEventBuffer,
	} {
		do()
	}
	return r.answers
}

// storeRun calls the stores of a device and notes what they return.
type storeRun struct {
	t       *testing.T
	ctx     context.Context
	d       *store.Device
	round   int
	answers []string
}

var (
	runPN, runLID   = types.NewJID("628111", types.DefaultUserServer), types.NewJID("777", types.HiddenUserServer)
	runPN2, runLID2 = types.NewJID("628222", types.DefaultUserServer), types.NewJID("888", types.HiddenUserServer)
	runPNDevice4    = types.JID{User: "628111", Server: types.DefaultUserServer, Device: 4}
	runGroup        = types.NewJID("12036", types.GroupServer)
	runKey1         = [32]byte{1}
	runKey2         = [32]byte{2}
)

func (r *storeRun) note(what string, values ...any) {
	r.answers = append(r.answers, fmt.Sprintf("%d %s: %v", r.round, what, values))
}

func (r *storeRun) at(second int64) time.Time { return time.Unix(second+1000*int64(r.round), 0) }

func (r *storeRun) trusted(address string, k [32]byte) {
	ok, err := r.d.Identities.IsTrustedIdentity(r.ctx, address, k)
	r.note("trusted "+address, ok, err)
}

func (r *storeRun) doIdentities() {
	ctx := r.ctx
	ids := r.d.Identities
	r.trusted("628111:0", runKey1)
	r.note("put identity", ids.PutIdentity(ctx, "628111:0", runKey1), ids.PutIdentity(ctx, "628111:0", runKey1),
		ids.PutIdentity(ctx, "628111:5", runKey2), ids.PutIdentity(ctx, "6281119:0", runKey2))
	r.trusted("628111:0", runKey1)
	r.trusted("628111:0", runKey2)
	r.trusted("628111:5", runKey1)
	r.note("delete identity", ids.DeleteIdentity(ctx, "628111:0"))
	r.trusted("628111:0", runKey2)
	r.note("delete identities", ids.DeleteAllIdentities(ctx, "628111"))
	r.trusted("628111:5", runKey1)
	r.trusted("6281119:0", runKey1)
}

func (r *storeRun) doSessions() {
	ctx := r.ctx
	ss := r.d.Sessions
	session := func(address string) {
		value, err := ss.GetSession(ctx, address)
		has, err2 := ss.HasSession(ctx, address)
		r.note("session "+address, string(value), value == nil, err, has, err2)
		if value != nil {
			r.note("put back", ss.PutSession(ctx, address, value))
		} else {
			r.note("delete none", ss.DeleteSession(ctx, address))
		}
	}
	session("628111:0")
	// ours wants sessions read before they are written
	_, err := ss.GetManySessions(ctx, []string{"628111:0", "628111:5", "6281119:0", "628222:0"})
	r.note("read sessions", err)
	r.note("put sessions", ss.PutManySessions(ctx,
		map[string][]byte{"628111:0": []byte("a"), "628111:5": []byte("b"), "6281119:0": []byte("c"), "628222:0": []byte("d")}))
	many, err := ss.GetManySessions(ctx, []string{"628111:0", "628111:5", "1:1"})
	r.note("sessions", len(many), string(many["628111:0"]), string(many["628111:5"]), many["1:1"] == nil, err)
	r.note("put them back", ss.PutManySessions(ctx, map[string][]byte{"628111:0": []byte("a2"), "628111:5": []byte("b2")}),
		ss.DeleteSession(ctx, "1:1"))
	session("628111:0")
	r.note("delete session", ss.DeleteSession(ctx, "628111:0"))
	session("628111:0")
	r.note("delete sessions", ss.DeleteAllSessions(ctx, "628111"))
	session("628111:5")
	session("6281119:0")

	r.note("sender key", r.d.SenderKeys.PutSenderKey(ctx, runGroup.String(), "628222:0", []byte("k")))
	r.note("identity of 628222", r.d.Identities.PutIdentity(ctx, "628222:0", runKey1))
	r.note("migrate", ss.MigratePNToLID(ctx, runPN2, runLID2), ss.MigratePNToLID(ctx, runPN2, runLID2),
		ss.MigratePNToLID(ctx, runPN, runLID))
	session("628222:0")
	session("888_1:0")
	r.trusted("888_1:0", runKey2)
	for _, user := range []string{"628222:0", "888_1:0", "1:1"} {
		value, err := r.d.SenderKeys.GetSenderKey(ctx, runGroup.String(), user)
		r.note("sender key of "+user, string(value), value == nil, err)
	}
}

func (r *storeRun) doPreKeys() {
	ctx := r.ctx
	pk := r.d.PreKeys
	count := func() {
		n, err := pk.UploadedPreKeyCount(ctx)
		r.note("uploaded keys", n, err)
	}
	made, err := pk.GetOrGenPreKeys(ctx, 3)
	r.note("keys", len(made), made[0].KeyID, made[2].KeyID, err)
	more, err := pk.GetOrGenPreKeys(ctx, 5)
	r.note("more keys", len(more), more[4].KeyID, *more[0].Priv == *made[0].Priv, err)
	count()
	r.note("mark", pk.MarkPreKeysAsUploaded(ctx, more[2].KeyID))
	count()
	one, err := pk.GenOnePreKey(ctx)
	r.note("one key", one.KeyID, err)
	count()
	got, err := pk.GetPreKey(ctx, one.KeyID)
	r.note("got key", got.KeyID, *got.Priv == *one.Priv, *got.Pub == *one.Pub, err)
	r.note("remove key", pk.RemovePreKey(ctx, one.KeyID))
	got, err = pk.GetPreKey(ctx, one.KeyID)
	r.note("no key", got == nil, err)
	count()
}

func (r *storeRun) doAppStateKeys() {
	ctx := r.ctx
	ak := r.d.AppStateKeys
	latest := func() {
		id, err := ak.GetLatestAppStateSyncKeyID(ctx)
		r.note("latest", id, err)
	}
	latest()
	put := func(id byte, data string, at int64) {
		r.note("put key of settings", ak.PutAppStateSyncKey(ctx, []byte{id},
			store.AppStateSyncKey{Data: []byte(data), Fingerprint: []byte("f"), Timestamp: at}))
	}
	put(1, "old", 10)
	put(2, "new", 20)
	put(1, "older", 5)
	latest()
	for _, id := range []byte{1, 2, 3} {
		k, err := ak.GetAppStateSyncKey(ctx, []byte{id})
		r.note("key of settings", k == nil, err)
		if k != nil {
			r.note("it", string(k.Data), string(k.Fingerprint), k.Timestamp)
		}
	}
}

func (r *storeRun) doAppState() {
	ctx := r.ctx
	as := r.d.AppState
	version := func(name string) {
		v, hash, err := as.GetAppStateVersion(ctx, name)
		r.note("version of "+name, v, hash[0], err)
	}
	if r.round == 0 {
		version("regular")
	}
	index, value := make([]byte, 32), make([]byte, 32)
	index[0], value[0] = 1, 2
	r.note("put version", as.PutAppStateVersion(ctx, "regular", uint64(4+r.round), [128]byte{9})) // its sums follow, as whatsmeow does it
	r.note("put sums", as.PutAppStateMutationMACs(ctx, "regular", uint64(4+r.round),
		[]store.AppStateMutationMAC{{IndexMAC: index, ValueMAC: value}}))
	version("regular")
	newer := append([]byte{3}, value[1:]...)
	r.note("put newer", as.PutAppStateMutationMACs(ctx, "regular", uint64(8+r.round),
		[]store.AppStateMutationMAC{{IndexMAC: index, ValueMAC: newer}}), as.PutAppStateMutationMACs(ctx, "regular", 9, nil))
	sum := func() {
		mac, err := as.GetAppStateMutationMAC(ctx, "regular", index)
		r.note("sum", mac, err)
	}
	sum()
	r.note("delete sums", as.DeleteAppStateMutationMACs(ctx, "regular", [][]byte{index}),
		as.DeleteAppStateMutationMACs(ctx, "regular", nil))
	sum()
	r.note("sum for nothing", as.PutAppStateMutationMACs(ctx, "unknown", 1,
		[]store.AppStateMutationMAC{{IndexMAC: index, ValueMAC: value}}) != nil)
	r.note("delete version", as.DeleteAppStateVersion(ctx, "regular"))
	version("regular")
}

func (r *storeRun) doContacts() {
	ctx := r.ctx
	cs := r.d.Contacts
	contact := func(jid types.JID) {
		c, err := cs.GetContact(ctx, jid)
		r.note("contact", jid, fmt.Sprintf("%+v", c), err)
	}
	contact(runPN2)
	changed, before, err := cs.PutPushName(ctx, runPN, fmt.Sprint("Ayu", r.round))
	r.note("push name", changed, before, err)
	changed, before, err = cs.PutPushName(ctx, runPN, fmt.Sprint("Ayu", r.round))
	r.note("push name again", changed, before, err)
	changed, _, err = cs.PutBusinessName(ctx, runPN, fmt.Sprint("Shop", r.round))
	r.note("business name", changed, err)
	r.note("name", cs.PutContactName(ctx, runPN, "A", "Ayu A."))
	contact(runPN)
	r.note("names", cs.PutAllContactNames(ctx, []store.ContactEntry{{JID: runPN, FirstName: "B", FullName: "B B"},
		{JID: runLID, FirstName: "C", FullName: "C C"}}), cs.PutAllContactNames(ctx, nil))
	r.note("redacted", cs.PutManyRedactedPhones(ctx, []store.RedactedPhoneEntry{{JID: runLID, RedactedPhone: "+62***1"}}),
		cs.PutManyRedactedPhones(ctx, nil))
	contact(runPN)
	contact(runLID)
}

func (r *storeRun) doLIDs() {
	ctx := r.ctx
	lids := r.d.LIDs
	pair := func(p, l types.JID) {
		a, err1 := lids.GetLIDForPN(ctx, p)
		b, err2 := lids.GetPNForLID(ctx, l)
		r.note("addresses", a, err1, b, err2)
	}
	pair(runPN, runLID)
	r.note("put addresses", lids.PutLIDMapping(ctx, runLID, runPN), lids.PutLIDMapping(ctx, runLID, runPN),
		lids.PutLIDMapping(ctx, runPN, runLID) != nil)
	pair(runPN, runLID)
	pair(runPNDevice4, runLID)
	r.note("put more", lids.PutManyLIDMappings(ctx,
		[]store.LIDMapping{{LID: runLID2, PN: runPN2}, {LID: runLID2, PN: runPN2}, {LID: runGroup, PN: runPN2},
			{LID: runLID, PN: runPN}}), lids.PutManyLIDMappings(ctx, nil))
	pair(runPN2, runLID2)
	found, err := lids.GetManyLIDsForPNs(ctx, []types.JID{runPN, runPN2, runPNDevice4, types.NewJID("1", types.DefaultUserServer), runLID})
	r.note("many", found[runPN], found[runPN2], found[runPNDevice4], len(found), err)
	_, err = lids.GetLIDForPN(ctx, runLID)
	r.note("not a number", err != nil)
	_, err = lids.GetPNForLID(ctx, runPN)
	r.note("not a LID", err != nil)
	lid3 := types.NewJID(fmt.Sprint("99", r.round), types.HiddenUserServer)
	r.note("a new LID for a number", lids.PutLIDMapping(ctx, lid3, runPN2))
	pair(runPN2, runLID2)
	pair(runPN2, lid3)
	r.note("and back", lids.PutLIDMapping(ctx, runLID2, runPN2))
	pair(runPN2, lid3)
}

func (r *storeRun) doMsgSecrets() {
	ctx := r.ctx
	ms := r.d.MsgSecrets
	secret := func(chat, sender types.JID, id string) {
		s, by, err := ms.GetMessageSecret(ctx, chat, sender, id)
		r.note("secret "+id, string(s), by, err)
	}
	secret(runPN, runPN, "M0")
	r.note("put secrets", ms.PutMessageSecret(ctx, runLID, runLID, "M1", []byte("one")),
		ms.PutMessageSecret(ctx, runLID, runLID, "M1", []byte("other")),
		ms.PutMessageSecrets(ctx, []store.MessageSecretInsert{{Chat: runGroup, Sender: runPNDevice4, ID: "M2", Secret: []byte("two")}}),
		ms.PutMessageSecrets(ctx, nil))
	secret(runLID, runLID, "M1")
	secret(runPN, runPN, "M1")
	secret(runPNDevice4, runLID, "M1")
	secret(runPN2, runPN, "M1")
	secret(runGroup, runLID, "M2")
	secret(runGroup, runPN2, "M2")
}

func (r *storeRun) doPrivacyTokens() {
	ctx := r.ctx
	pt := r.d.PrivacyTokens
	token := func(user types.JID) {
		k, err := pt.GetPrivacyToken(ctx, user)
		if k == nil {
			r.note("no token", user, err)
			return
		}
		r.note("token", k.User, string(k.Token), k.Timestamp.Unix(), k.SenderTimestamp.IsZero(), k.SenderTimestamp.Unix(), err)
	}
	token(runLID2)
	r.note("put tokens", pt.PutPrivacyTokens(ctx, store.PrivacyToken{User: runLID, Token: []byte("t1"), Timestamp: r.at(100),
		SenderTimestamp: r.at(90)}, store.PrivacyToken{User: runPN2, Token: []byte("t2"), Timestamp: r.at(100)}))
	token(runLID)
	token(runPN)
	token(runLID2)
	r.note("older token", pt.PutPrivacyTokens(ctx, store.PrivacyToken{User: runLID, Token: []byte("t0"), Timestamp: r.at(50)}))
	token(runLID)
	r.note("newer token", pt.PutPrivacyTokens(ctx, store.PrivacyToken{User: runLID, Token: []byte("t3"), Timestamp: r.at(150)}))
	token(runLID)
	r.note("token by number", pt.PutPrivacyTokens(ctx, store.PrivacyToken{User: runPN, Token: []byte("t4"), Timestamp: r.at(200)}))
	token(runLID)
	deleted, err := pt.DeleteExpiredPrivacyTokens(ctx, r.at(150))
	r.note("expired", deleted, err)
	token(runPN2)
	token(runLID)

	salt := func() {
		s, err := r.d.NCTSalt.GetNCTSalt(ctx)
		r.note("salt", s, s == nil, err)
	}
	salt()
	r.note("put salt", r.d.NCTSalt.PutNCTSalt(ctx, []byte("s")), r.d.NCTSalt.PutNCTSalt(ctx, []byte("s2")))
	salt()
	r.note("delete salt", r.d.NCTSalt.DeleteNCTSalt(ctx))
	salt()
}

func (r *storeRun) doEventBuffer() {
	ctx := r.ctx
	eb := r.d.EventBuffer
	event := func(hash [32]byte) {
		e, err := eb.GetBufferedEvent(ctx, hash)
		if e == nil {
			r.note("no event", err)
			return
		}
		r.note("event", string(e.Plaintext), e.ServerTime.Unix(), time.Since(e.InsertTime) < time.Hour, err)
	}
	hash := [32]byte{byte(r.round)}
	event(hash)
	r.note("unit", eb.DoDecryptionTxn(ctx,
		func(ctx context.Context) error { return eb.PutBufferedEvent(ctx, hash, []byte("text"), r.at(5)) }))
	event(hash)
	r.note("failed unit", eb.DoDecryptionTxn(ctx, func(ctx context.Context) error {
		must(r.t, eb.PutBufferedEvent(ctx, [32]byte{200}, []byte("text"), r.at(5)))
		must(r.t, r.d.Identities.PutIdentity(ctx, "3:3", runKey1))
		ok, err := r.d.Identities.IsTrustedIdentity(ctx, "3:3", runKey2)
		r.note("inside a unit", ok, err)
		return fmt.Errorf("no")
	}))
	r.trusted("3:3", runKey2)
	r.note("old ones", eb.DeleteOldBufferedHashes(ctx))
	event(hash)
}
