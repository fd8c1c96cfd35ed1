// Command whatsmeowdiff prints how the functions of whatsmeow that the driver replaces, or calls by their private names, differ between
// two versions of it. An upgrade has to carry those changes over by hand:
//
//	go run ./internal/tools/whatsmeowdiff OLD NEW
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "go.mau.fi/whatsmeow"

// replaced are the functions, by the file of the driver that does their work.
var replaced = map[string][]string{
	"dispatch.go": {"SendMessage", "sendDM", "prepareMessageNode", "getMessageContent", "marshalMessage", "participantListHashV2",
		"encryptMessageForDevices", "encryptMessageForDeviceAndWrap", "encryptMessageForDevice", "padMessage", "ensureTCToken",
		"shouldSendNewTCToken", "getTCTokenSenderTS", "issuePrivacyTokenAndSave", "generateCsToken", "shouldIncludeReportingToken",
		"getMessageReportingToken"},
	"stanza_type.go": {"getTypeFromMessage", "getMediaTypeFromMessage", "getEditAttribute"},
	"group_send.go":  {"sendGroup"},
	"devices.go":     {"GetUserDevices", "parseDeviceList", "usync", "fetchPreKeys", "fetchPreKeysNoError", "nodeToPreKeyBundle"},
	"compose.go":     {"BuildEdit", "BuildRevoke"},
	"retry.go":       {"addRecentMessage", "getMessageForRetry", "tryHandleRetryReceipt", "handleRetryReceipt"},
	"unreadable.go":  {"sendRetryReceipt", "immediateRequestMessageFromPhone", "preparePeerMessageNode", "decryptMessages"},
	"receipts.go":    {"handleReceipt", "handleGroupedReceipt", "parseReceipt", "maybeDeferredAck", "sendAck", "buildBaseReceipt"},
	"stanzas.go":     {"handleFrame", "handlerQueueLoop", "handleEncryptedMessage"},
	"operations.go":  {"SendPresence", "sendUnifiedSession", "MarkRead", "SendAppState"},
	"watchdog.go":    {"keepAliveLoop", "sendKeepAlive"},
	"pair.go":        {"PairPhone", "handlePair", "handlePasskeyNotification", "SendPasskeyResponse", "SendPasskeyConfirmation"},
	"version.go":     {"GetLatestVersion"},
	"media.go":       {"rawUpload", "refreshMediaConn"},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: whatsmeowdiff OLD NEW, versions of "+module)
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "whatsmeowdiff:", err)
		os.Exit(1)
	}
}

func run(older, newer string) error {
	dir, err := os.MkdirTemp("", "whatsmeowdiff")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, version := range []string{older, newer} {
		source, err := download(version)
		if err != nil {
			return err
		}
		text, missing, err := extract(source)
		if err != nil {
			return err
		}
		for _, name := range missing {
			fmt.Printf("%s has no function %s\n", version, name)
		}
		if err := os.WriteFile(filepath.Join(dir, version), []byte(text), 0o600); err != nil {
			return err
		}
	}
	diff := exec.Command("diff", "-u", older, newer)
	diff.Dir, diff.Stdout, diff.Stderr = dir, os.Stdout, os.Stderr
	err = diff.Run()
	if code, ok := errors.AsType[*exec.ExitError](err); ok && code.ExitCode() == 1 {
		return nil // they differ
	}
	return err
}

// download returns the directory of a version, which comes from the module proxy if it is not there.
func download(version string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w: %s", version, err, out)
	}
	var found struct{ Dir string }
	return found.Dir, json.Unmarshal(out, &found)
}

// extract returns the source of the replaced functions in order, and the names of those that are not there.
func extract(dir string) (text string, missing []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", nil, err
	}
	sources := map[string]string{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return "", nil, err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !strings.HasSuffix(file, "internals.go") {
				sources[f.Name.Name] = string(source[positions.Position(f.Pos()).Offset:positions.Position(f.End()).Offset])
			}
		}
	}
	var b strings.Builder
	for _, names := range replaced {
		for _, name := range names {
			if sources[name] == "" {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	for _, file := range slices.Sorted(maps.Keys(replaced)) {
		for _, name := range replaced[file] {
			fmt.Fprintf(&b, "// replaced in %s\n%s\n\n", file, sources[name])
		}
	}
	return b.String(), missing, nil
}
