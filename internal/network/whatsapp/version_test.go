package whatsapp

import (
	"testing"

	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/store"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestRefusedVersion connects with the current version after WhatsApp refused ours, and also after a restart.
func TestRefusedVersion(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	own := store.GetWAVersion()
	w.RequireVersion(own[2]+5, own[2]+9)
	skip := in.count()
	refuseOnce(w)
	in.statusAfter(skip, parley.ChannelWorking)
	number, since := w.driver.Version()
	if want := (store.WAVersionContainer{own[0], own[1], own[2] + 9}); number != want.String() || since.IsZero() || w.VersionsAsked() != 1 {
		t.Errorf("it is %s since %s, asked for %d times", number, since, w.VersionsAsked())
	}
	w.sent(s, w.text(friendID, "still here"))

	must(t, s.Close())
	must(t, w.driver.Close())
	w.open()
	_, in = w.start()
	in.status(parley.ChannelWorking)
	if again, _ := w.driver.Version(); again != number || w.VersionsAsked() != 1 {
		t.Errorf("after a restart it is %s, asked for %d times", again, w.VersionsAsked())
	}
}

// TestDeviceProps says at a pairing what the phone lists.
func TestDeviceProps(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start()
	shown := func() (string, waCompanionReg.DeviceProps_PlatformType) {
		t.Helper()
		conn := newConnection(s, s.d.keys.NewDevice())
		defer conn.close()
		var props waCompanionReg.DeviceProps
		must(t, proto.Unmarshal(conn.payload().DevicePairingData.DeviceProps, &props))
		return props.GetOs(), props.GetPlatformType()
	}
	if name, platform := shown(); name != "Parley" || platform != waCompanionReg.DeviceProps_DESKTOP {
		t.Errorf("the device is %q on %s", name, platform)
	}
	w.driver.config.DeviceName, w.driver.config.Platform = "Toko", "chrome"
	if name, platform := shown(); name != "Toko" || platform != waCompanionReg.DeviceProps_CHROME {
		t.Errorf("the device is %q on %s", name, platform)
	}
	if CheckPlatform("toaster") == nil {
		t.Error("a toaster is a platform")
	}
}

// TestSetVersion asks nobody for a version where that is not wanted, and uses the one that somebody sets without a restart.
func TestSetVersion(t *testing.T) {
	w := newWorld(t)
	must(t, w.driver.SetVersion(t.Context(), versionBuiltIn))
	_, in := w.paired()
	own := store.GetWAVersion()
	w.RequireVersion(own[2]+5, own[2]+9)
	skip := in.count()
	refuseOnce(w)
	in.statusAfter(skip, parley.ChannelFailed)
	if w.VersionsAsked() != 0 {
		t.Errorf("the version was asked for %d times", w.VersionsAsked())
	}
	for _, wrong := range []string{"latest", "2.3000", "2.3000.x", "2.3000.-1", "2.3000.99999999999", "0.0.0"} {
		if err := w.driver.SetVersion(t.Context(), wrong); parley.ToCode(err) != parley.Invalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	own[2] += 7
	must(t, w.driver.SetVersion(t.Context(), own.String()))
	in.statusAfter(skip, parley.ChannelWorking)
}

// TestVersionAtPairing pairs with the current version after WhatsApp refused ours.
func TestVersionAtPairing(t *testing.T) {
	w := newWorld(t)
	own := store.GetWAVersion()
	w.RequireVersion(own[2]+5, own[2]+9)
	s, in := w.start()
	in.status(parley.ChannelScanQRCode)
	must(t, s.Pair(t.Context()))
	expect(in, 0, func(p network.Pairing) bool { return p.Step == parley.QRStep })
}

// refuseOnce ends the connection, so that the next login meets the version that the network requires.
func refuseOnce(w *world) { w.link.End(whatsapptest.Cut) }
