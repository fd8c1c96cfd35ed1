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
func doEverything(t *testing.T, d *store.Device, round int) (answers []string) {
	ctx := t.Context()
	note := func(what string, values ...any) {
		answers = append(answers, fmt.Sprintf("%d %s: %v", round, what, values))
	}
	pn, lid := types.NewJID("628111", types.DefaultUserServer), types.NewJID("777", types.HiddenUserServer)
	pn2, lid2 := types.NewJID("628222", types.DefaultUserServer), types.NewJID("888", types.HiddenUserServer)
	group := types.NewJID("12036", types.GroupServer)
	key1, key2 := [32]byte{1}, [32]byte{2}

	note("device", d.ID, d.LID, d.RegistrationID, d.PushName, d.LIDMigrationTimestamp, d.Account.GetDetails(),
		len(d.Account.GetDeviceSignature()), d.SignedPreKey.KeyID, d.Initialized)

	ids := d.Identities
	trusted := func(address string, k [32]byte) {
		ok, err := ids.IsTrustedIdentity(ctx, address, k)
		note("trusted "+address, ok, err)
	}
	trusted("628111:0", key1)
	note("put identity", ids.PutIdentity(ctx, "628111:0", key1), ids.PutIdentity(ctx, "628111:0", key1),
		ids.PutIdentity(ctx, "628111:5", key2), ids.PutIdentity(ctx, "6281119:0", key2))
	trusted("628111:0", key1)
	trusted("628111:0", key2)
	trusted("628111:5", key1)
	note("delete identity", ids.DeleteIdentity(ctx, "628111:0"))
	trusted("628111:0", key2)
	note("delete identities", ids.DeleteAllIdentities(ctx, "628111"))
	trusted("628111:5", key1)
	trusted("6281119:0", key1)

	ss := d.Sessions
	session := func(address string) {
		value, err := ss.GetSession(ctx, address)
		has, err2 := ss.HasSession(ctx, address)
		note("session "+address, string(value), value == nil, err, has, err2)
		if value != nil {
			note("put back", ss.PutSession(ctx, address, value))
		} else {
			note("delete none", ss.DeleteSession(ctx, address))
		}
	}
	session("628111:0")
	// ours wants sessions read before they are written
	_, err := ss.GetManySessions(ctx, []string{"628111:0", "628111:5", "6281119:0", "628222:0"})
	note("read sessions", err)
	note("put sessions", ss.PutManySessions(ctx,
		map[string][]byte{"628111:0": []byte("a"), "628111:5": []byte("b"), "6281119:0": []byte("c"), "628222:0": []byte("d")}))
	many, err := ss.GetManySessions(ctx, []string{"628111:0", "628111:5", "1:1"})
	note("sessions", len(many), string(many["628111:0"]), string(many["628111:5"]), many["1:1"] == nil, err)
	note("put them back", ss.PutManySessions(ctx, map[string][]byte{"628111:0": []byte("a2"), "628111:5": []byte("b2")}),
		ss.DeleteSession(ctx, "1:1"))
	session("628111:0")
	note("delete session", ss.DeleteSession(ctx, "628111:0"))
	session("628111:0")
	note("delete sessions", ss.DeleteAllSessions(ctx, "628111"))
	session("628111:5")
	session("6281119:0")

	note("sender key", d.SenderKeys.PutSenderKey(ctx, group.String(), "628222:0", []byte("k")))
	note("identity of 628222", ids.PutIdentity(ctx, "628222:0", key1))
	note("migrate", ss.MigratePNToLID(ctx, pn2, lid2), ss.MigratePNToLID(ctx, pn2, lid2), ss.MigratePNToLID(ctx, pn, lid))
	session("628222:0")
	session("888_1:0")
	trusted("888_1:0", key2)
	for _, user := range []string{"628222:0", "888_1:0", "1:1"} {
		value, err := d.SenderKeys.GetSenderKey(ctx, group.String(), user)
		note("sender key of "+user, string(value), value == nil, err)
	}

	pk := d.PreKeys
	count := func() {
		n, err := pk.UploadedPreKeyCount(ctx)
		note("uploaded keys", n, err)
	}
	made, err := pk.GetOrGenPreKeys(ctx, 3)
	note("keys", len(made), made[0].KeyID, made[2].KeyID, err)
	more, err := pk.GetOrGenPreKeys(ctx, 5)
	note("more keys", len(more), more[4].KeyID, *more[0].Priv == *made[0].Priv, err)
	count()
	note("mark", pk.MarkPreKeysAsUploaded(ctx, more[2].KeyID))
	count()
	one, err := pk.GenOnePreKey(ctx)
	note("one key", one.KeyID, err)
	count()
	got, err := pk.GetPreKey(ctx, one.KeyID)
	note("got key", got.KeyID, *got.Priv == *one.Priv, *got.Pub == *one.Pub, err)
	note("remove key", pk.RemovePreKey(ctx, one.KeyID))
	got, err = pk.GetPreKey(ctx, one.KeyID)
	note("no key", got == nil, err)
	count()

	ak := d.AppStateKeys
	latest := func() {
		id, err := ak.GetLatestAppStateSyncKeyID(ctx)
		note("latest", id, err)
	}
	latest()
	put := func(id byte, data string, at int64) {
		note("put key of settings", ak.PutAppStateSyncKey(ctx, []byte{id},
			store.AppStateSyncKey{Data: []byte(data), Fingerprint: []byte("f"), Timestamp: at}))
	}
	put(1, "old", 10)
	put(2, "new", 20)
	put(1, "older", 5)
	latest()
	for _, id := range []byte{1, 2, 3} {
		k, err := ak.GetAppStateSyncKey(ctx, []byte{id})
		note("key of settings", k == nil, err)
		if k != nil {
			note("it", string(k.Data), string(k.Fingerprint), k.Timestamp)
		}
	}
	all, err := ak.GetAllAppStateSyncKeys(ctx)
	note("all keys of settings", len(all), string(all[0].Data), err)

	as := d.AppState
	version := func(name string) {
		v, hash, err := as.GetAppStateVersion(ctx, name)
		note("version of "+name, v, hash[0], err)
	}
	if round == 0 {
		version("regular")
	}
	index, value := make([]byte, 32), make([]byte, 32)
	index[0], value[0] = 1, 2
	note("put version", as.PutAppStateVersion(ctx, "regular", uint64(4+round), [128]byte{9})) // its sums follow, as whatsmeow does it
	note("put sums", as.PutAppStateMutationMACs(ctx, "regular", uint64(4+round),
		[]store.AppStateMutationMAC{{IndexMAC: index, ValueMAC: value}}))
	version("regular")
	newer := append([]byte{3}, value[1:]...)
	note("put newer", as.PutAppStateMutationMACs(ctx, "regular", uint64(8+round),
		[]store.AppStateMutationMAC{{IndexMAC: index, ValueMAC: newer}}), as.PutAppStateMutationMACs(ctx, "regular", 9, nil))
	sum := func() {
		mac, err := as.GetAppStateMutationMAC(ctx, "regular", index)
		note("sum", mac, err)
	}
	sum()
	note("delete sums", as.DeleteAppStateMutationMACs(ctx, "regular", [][]byte{index}), as.DeleteAppStateMutationMACs(ctx, "regular", nil))
	sum()
	note("sum for nothing", as.PutAppStateMutationMACs(ctx, "unknown", 1,
		[]store.AppStateMutationMAC{{IndexMAC: index, ValueMAC: value}}) != nil)
	note("delete version", as.DeleteAppStateVersion(ctx, "regular"))
	version("regular")

	cs := d.Contacts
	contact := func(jid types.JID) {
		c, err := cs.GetContact(ctx, jid)
		note("contact", jid, fmt.Sprintf("%+v", c), err)
	}
	contact(pn2)
	changed, before, err := cs.PutPushName(ctx, pn, fmt.Sprint("Ayu", round))
	note("push name", changed, before, err)
	changed, before, err = cs.PutPushName(ctx, pn, fmt.Sprint("Ayu", round))
	note("push name again", changed, before, err)
	changed, _, err = cs.PutBusinessName(ctx, pn, fmt.Sprint("Shop", round))
	note("business name", changed, err)
	note("name", cs.PutContactName(ctx, pn, "A", "Ayu A."))
	contact(pn)
	note("names", cs.PutAllContactNames(ctx, []store.ContactEntry{{JID: pn, FirstName: "B", FullName: "B B"},
		{JID: lid, FirstName: "C", FullName: "C C"}}), cs.PutAllContactNames(ctx, nil))
	note("redacted", cs.PutManyRedactedPhones(ctx, []store.RedactedPhoneEntry{{JID: lid, RedactedPhone: "+62***1"}}),
		cs.PutManyRedactedPhones(ctx, nil))
	contact(pn)
	contact(lid)
	everybody, err := cs.GetAllContacts(ctx)
	note("contacts", len(everybody), fmt.Sprintf("%+v %+v", everybody[pn], everybody[lid]), err)

	ch := d.ChatSettings
	settings := func() {
		c, err := ch.GetChatSettings(ctx, pn)
		note("chat", c.Found, c.MutedUntil.Unix(), c.Pinned, c.Archived, err)
	}
	settings()
	note("mute", ch.PutMutedUntil(ctx, pn, time.Unix(1000, 0)), ch.PutPinned(ctx, pn, true), ch.PutArchived(ctx, pn, true))
	settings()
	note("mute for ever", ch.PutMutedUntil(ctx, pn, store.MutedForever), ch.PutPinned(ctx, pn, false))
	settings()
	note("unmute", ch.PutMutedUntil(ctx, pn, time.Time{}))
	settings()

	lids := d.LIDs
	pair := func(p, l types.JID) {
		a, err1 := lids.GetLIDForPN(ctx, p)
		b, err2 := lids.GetPNForLID(ctx, l)
		note("addresses", a, err1, b, err2)
	}
	pair(pn, lid)
	note("put addresses", lids.PutLIDMapping(ctx, lid, pn), lids.PutLIDMapping(ctx, lid, pn), lids.PutLIDMapping(ctx, pn, lid) != nil)
	pair(pn, lid)
	withDevice := pn
	withDevice.Device = 4
	pair(withDevice, lid)
	note("put more", lids.PutManyLIDMappings(ctx, []store.LIDMapping{{LID: lid2, PN: pn2}, {LID: lid2, PN: pn2}, {LID: group, PN: pn2},
		{LID: lid, PN: pn}}), lids.PutManyLIDMappings(ctx, nil))
	pair(pn2, lid2)
	found, err := lids.GetManyLIDsForPNs(ctx, []types.JID{pn, pn2, withDevice, types.NewJID("1", types.DefaultUserServer), lid})
	note("many", found[pn], found[pn2], found[withDevice], len(found), err)
	_, err = lids.GetLIDForPN(ctx, lid)
	note("not a number", err != nil)
	_, err = lids.GetPNForLID(ctx, pn)
	note("not a LID", err != nil)
	lid3 := types.NewJID(fmt.Sprint("99", round), types.HiddenUserServer)
	note("a new LID for a number", lids.PutLIDMapping(ctx, lid3, pn2))
	pair(pn2, lid2)
	pair(pn2, lid3)
	note("and back", lids.PutLIDMapping(ctx, lid2, pn2))
	pair(pn2, lid3)

	ms := d.MsgSecrets
	secret := func(chat, sender types.JID, id string) {
		s, by, err := ms.GetMessageSecret(ctx, chat, sender, id)
		note("secret "+id, string(s), by, err)
	}
	secret(pn, pn, "M0")
	note("put secrets", ms.PutMessageSecret(ctx, lid, lid, "M1", []byte("one")), ms.PutMessageSecret(ctx, lid, lid, "M1", []byte("other")),
		ms.PutMessageSecrets(ctx, []store.MessageSecretInsert{{Chat: group, Sender: withDevice, ID: "M2", Secret: []byte("two")}}),
		ms.PutMessageSecrets(ctx, nil))
	secret(lid, lid, "M1")
	secret(pn, pn, "M1")
	secret(withDevice, lid, "M1")
	secret(pn2, pn, "M1")
	secret(group, lid, "M2")
	secret(group, pn2, "M2")

	pt := d.PrivacyTokens
	token := func(user types.JID) {
		k, err := pt.GetPrivacyToken(ctx, user)
		if k == nil {
			note("no token", user, err)
			return
		}
		note("token", k.User, string(k.Token), k.Timestamp.Unix(), k.SenderTimestamp.IsZero(), k.SenderTimestamp.Unix(), err)
	}
	at := func(second int64) time.Time { return time.Unix(second+1000*int64(round), 0) }
	token(lid2)
	note("put tokens", pt.PutPrivacyTokens(ctx, store.PrivacyToken{User: lid, Token: []byte("t1"), Timestamp: at(100),
		SenderTimestamp: at(90)}, store.PrivacyToken{User: pn2, Token: []byte("t2"), Timestamp: at(100)}))
	token(lid)
	token(pn)
	token(lid2)
	note("older token", pt.PutPrivacyTokens(ctx, store.PrivacyToken{User: lid, Token: []byte("t0"), Timestamp: at(50)}))
	token(lid)
	note("newer token", pt.PutPrivacyTokens(ctx, store.PrivacyToken{User: lid, Token: []byte("t3"), Timestamp: at(150)}))
	token(lid)
	note("token by number", pt.PutPrivacyTokens(ctx, store.PrivacyToken{User: pn, Token: []byte("t4"), Timestamp: at(200)}))
	token(lid)
	deleted, err := pt.DeleteExpiredPrivacyTokens(ctx, at(150))
	note("expired", deleted, err)
	token(pn2)
	token(lid)

	salt := func() {
		s, err := d.NCTSalt.GetNCTSalt(ctx)
		note("salt", s, s == nil, err)
	}
	salt()
	note("put salt", d.NCTSalt.PutNCTSalt(ctx, []byte("s")), d.NCTSalt.PutNCTSalt(ctx, []byte("s2")))
	salt()
	note("delete salt", d.NCTSalt.DeleteNCTSalt(ctx))
	salt()

	eb := d.EventBuffer
	event := func(hash [32]byte) {
		e, err := eb.GetBufferedEvent(ctx, hash)
		if e == nil {
			note("no event", err)
			return
		}
		note("event", string(e.Plaintext), e.ServerTime.Unix(), time.Since(e.InsertTime) < time.Hour, err)
	}
	hash := [32]byte{byte(round)}
	event(hash)
	note("unit", eb.DoDecryptionTxn(ctx, func(ctx context.Context) error { return eb.PutBufferedEvent(ctx, hash, []byte("text"), at(5)) }))
	event(hash)
	note("failed unit", eb.DoDecryptionTxn(ctx, func(ctx context.Context) error {
		must(t, eb.PutBufferedEvent(ctx, [32]byte{200}, []byte("text"), at(5)))
		must(t, d.Identities.PutIdentity(ctx, "3:3", key1))
		ok, err := d.Identities.IsTrustedIdentity(ctx, "3:3", key2)
		note("inside a unit", ok, err)
		return fmt.Errorf("no")
	}))
	trusted("3:3", key2)
	note("old ones", eb.DeleteOldBufferedHashes(ctx))
	event(hash)
	return answers
}
