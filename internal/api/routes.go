package api

import (
	"net/http"
	"slices"
	"strings"

	"parley"
	"parley/internal/store"
)

// row is one line of the table of routes: all that is declared of an endpoint.
type row struct {
	// pattern is "METHOD /path", followed by other spellings of the path that clients use. One that ends in {$} is the path with a
	// slash at its end, which is no route of its own: OpenAPI tools reject such paths.
	pattern string
	access  access
	// role is the least one that may call it, as an admin token or in the console. Viewers read everything but secrets. What other
	// roles may do besides is in [parley.Roles].
	role parley.Role
	// audit is the act that the audit log shows; empty: none. Reading is not logged, except of secrets, backups and exports. Of the
	// routes for channel tokens only what a person does in the console is logged, and no typing, uploads or acts of simulated phones.
	audit string
	input input
	work
}

const viewer, support, operator, owner = parley.Viewer, parley.Support, parley.Operator, parley.Owner

// tokenRoutes lists all routes that need a token or a console session.
func tokenRoutes(s *server) []row {
	return slices.Concat(messagingRoutes(s), sandboxRoutes(s), manageChannelRoutes(s), manageRoutes(s))
}

// Routes lists every route as "METHOD /path", for tests of the documentation.
func Routes() (names []string) {
	for _, row := range append(tokenRoutes(&server{}), publicRoutes(&server{})...) {
		names = append(names, row.names()...)
	}
	return names
}

// names lists the row's routes as "METHOD /path", without spellings that end in {$}.
func (r row) names() (names []string) {
	parts := strings.Fields(r.pattern)
	for _, path := range parts[1:] {
		if !strings.HasSuffix(path, "/{$}") {
			names = append(names, parts[0]+" "+path)
		}
	}
	return names
}

func messagingRoutes(s *server) []row {
	return []row{
		{"POST /api/send-message/text", ofChannel, support, store.AuditSend, body, s.sending(readText)},
		{"POST /api/send-message/image", ofChannel, support, store.AuditSend, body, s.sending(readImage)},
		{"POST /api/send-message/video", ofChannel, support, store.AuditSend, body, s.sending(readVideo)},
		{"POST /api/send-message/file", ofChannel, support, store.AuditSend, body, s.sending(readFile)},
		{"POST /api/send-message/voice", ofChannel, support, store.AuditSend, body, s.sending(readVoice)},
		{"POST /api/send-message/sticker", ofChannel, support, store.AuditSend, body, s.sending(readSticker)},
		{"POST /api/send-message/location", ofChannel, support, store.AuditSend, body, s.sending(readLocation)},
		{"POST /api/send-message/contact", ofChannel, support, store.AuditSend, body, s.sending(readContacts)},
		{"POST /api/send-message/template", ofChannel, support, store.AuditSend, body, s.sendingTemplate()},
		{"GET /api/templates", ofChannel, viewer, "", nothing, handle(s.listTemplates)},
		{"POST /api/templates", ofChannel, operator, "template.create", body, handleCreated(s.createTemplate)},
		{"DELETE /api/templates/{name}", ofChannel, operator, "template.delete", nothing, handle(s.deleteTemplate)},
		{"POST /api/send-message/poll /api/send-message/polling", ofChannel, support, store.AuditSend, body, s.sending(readPoll)},
		{"POST /api/send-message/forward", ofChannel, support, store.AuditSend, body, work{draft: s.forward, fromMessages: sendResponse}},
		{"POST /api/send-message/pool", ofGlobal, support, store.AuditSend, body, pooling(s)},

		{"PUT /api/send-message/reaction /api/send-message/react", ofChannel, support, "message.react", body, s.changing(s.react)},
		{"PUT /api/send-message/edit", ofChannel, support, "message.edit", body, s.changing(s.edit)},
		{"POST /api/send-message/seen", ofChannel, support, "message.mark_seen", body, s.changing(s.see)},
		{"DELETE /api/send-message/delete", ofChannel, support, "message.delete", queryOrBody, s.changing(s.delete)},
		{"PUT /api/send-message/star", ofChannel, support, "message.star", body, s.changing(s.star)},
		{"POST /api/send-message/typing", ofChannel, support, "", body, handleText(s.typing(true))},
		{"POST /api/send-message/stop-typing", ofChannel, support, "", body, handleText(s.typing(false))},

		{"GET /api/chat /api/chat/{$} /api/chat/all", ofChannel, viewer, "", query, handle(s.chats)},
		{"GET /api/chat/detail /api/chat/details", ofChannel, viewer, "", query, handle(s.history)},
		{"POST /api/chat/archive", ofChannel, support, "chat.archive", body, work{draft: s.archive(true), fromMessages: s.archiveResponse}},
		{"POST /api/chat/un-archive /api/chat/unarchive", ofChannel, support, "chat.unarchive", body, s.changing(s.archive(false))},
		{"PUT /api/chat/read", ofChannel, support, "chat.read", body, s.changing(s.readWholeChat)},
		{"PUT /api/chat/disappearing", ofChannel, support, "chat.disappearing", body, s.changing(s.setTimer)},

		{"GET /api/messages", ofChannel, viewer, "", query, handle(s.listMessages)},
		{"GET /api/messages/{message_id}", ofChannel, viewer, "", query, handle(s.readMessage)},
		{"POST /api/media", ofChannel, support, "", upload, work{do: handle(s.addUpload).do, anywhere: true}},
		{"GET /api/media/{id}", ofChannel, viewer, "", nothing, work{do: s.readFile, signed: s.readSignedFile, anywhere: true}},

		{"GET /api/contact /api/contact/{$} /api/contact/all", ofChannel, viewer, "", query, handleString(onUsable(s.contacts))},
		{"GET /api/contact/info /api/contact/detail", ofChannel, viewer, "", query, handleString(onUsable(s.contactInfo))},
		{"GET /api/contact/picture", ofChannel, viewer, "", query, handle(onUsable(s.picture))},
		{"PUT /api/contact/block", ofChannel, support, "contact.block", body, handle(onUsable(s.blockContact))},
		{"GET /api/contact/opt-outs", ofChannel, viewer, "", query, handle(s.listOptOuts)},
		{"GET /api/contact/opt-outs/export", ofChannel, viewer, "contact.export_opt_outs", query, work{do: s.exportOptOuts}},
		{"POST /api/contact/opt-outs", ofChannel, support, "contact.opt_out", body, handle(s.addOptOuts)},
		{"DELETE /api/contact/opt-outs", ofChannel, support, "contact.opt_in", query, handle(s.removeOptOut)},
		{"GET /api/groups /api/groups/all", ofChannel, viewer, "", query, handle(onUsable(s.groups))},
		{"POST /api/groups/create", ofChannel, operator, "group.create", body, handle(onUsable(s.createGroup))},
		{"GET /api/groups/participants", ofChannel, viewer, "", query, handle(onUsable(s.participants))},
		{"POST /api/groups/participant", ofChannel, viewer, "", body, handle(onUsable(s.participants))},
		{"POST /api/groups/add", ofChannel, operator, "group.add", body, handle(onUsable(s.updateMembers(true)))},
		{"POST /api/groups/remove", ofChannel, operator, "group.remove", body, handle(onUsable(s.updateMembers(false)))},
		{"POST /api/groups/leave", ofChannel, operator, "group.leave", body, handle(onUsable(s.leaveGroup))},
		{"PUT /api/groups/promote", ofChannel, operator, "group.promote", body, handle(onUsable(s.setAdmins(true)))},
		{"PUT /api/groups/demote", ofChannel, operator, "group.demote", body, handle(onUsable(s.setAdmins(false)))},
		{"PUT /api/groups/name", ofChannel, operator, "group.change", body, handle(onUsable(s.changeGroup(readGroupName)))},
		{"PUT /api/groups/description", ofChannel, operator, "group.change", body, handle(onUsable(s.changeGroup(readDescription)))},
		{"PUT /api/groups/picture", ofChannel, operator, "group.change", body, handle(onUsable(s.changeGroupPicture))},
		{"PUT /api/groups/settings", ofChannel, operator, "group.change", body, handle(onUsable(s.changeGroup(readGroupSettings)))},
		{"POST /api/groups/join", ofChannel, operator, "group.join", body, handle(onUsable(s.joinGroup))},
		{"GET /api/groups/requests", ofChannel, operator, "", query, handle(onUsable(s.joinRequests))},
		{"POST /api/groups/requests", ofChannel, operator, "group.answer_requests", body, handle(onUsable(s.answerRequests))},
		{"GET /api/groups/invite", ofChannel, operator, "", query, handle(onUsable(s.inviteLink))},
		{"GET /api/channel/health", ofChannel, viewer, "", nothing, handle(s.health)},
		{"GET /api/channel/check-phone-number", ofChannel, support, "", query, handle(onUsable(s.checkNumber))}, // it asks the network

		{"POST /api/otp/code/request", ofChannel, operator, "otp.send_code", body, work{do: s.requestCode, namesChannels: true}},
		{"POST /api/otp/code/global", ofGlobal, operator, "otp.send_code", body, work{do: s.requestGlobalCode, namesChannels: true}},
		{"POST /api/otp/code/validate", ofChannel, operator, "", body, certainly(handle(s.validateCode))},
		{"POST /api/otp/link/request", ofChannel, operator, "otp.create_link", body, linking(s, ownChannel)},
		{"POST /api/otp/link/global", ofGlobal, operator, "otp.create_link", body, linking(s, s.workingChannels)},
		{"GET /api/otp/link/{id}", ofAny, viewer, "", nothing, handle(s.link)},

		{"GET /api/events", ofAny, viewer, "", query, work{stream: (*route).openStream, readsLog: true}},
		{"GET /api/events/recent", ofAny, viewer, "", query, handle(s.recentEvents)},
		{"POST /mcp", ofEvery, viewer, "", body, work{stream: (*route).openMCP}}, // its tools call other routes, which check the role too
	}
}

func sandboxRoutes(s *server) []row {
	return []row{
		{"GET /api/sandbox/cursor", ofChannel, viewer, "", nothing, s.onSandbox(s.cursor)},
		{"GET /api/sandbox/phones", ofChannel, viewer, "", nothing, s.onSandbox(s.phones)},
		{"POST /api/sandbox/phones", ofChannel, support, "", optionalBody, s.onSandbox(s.createPhone)},
		{"PATCH /api/sandbox/phones/{number}", ofChannel, support, "", body, s.onSandbox(s.changePhone)},
		{"GET /api/sandbox/phones/{number}/messages", ofChannel, viewer, "", query, s.onSandbox(s.phoneMessages)},
		{"GET /api/sandbox/phones/{number}/chats", ofChannel, viewer, "", nothing, s.onSandbox(s.phoneChats)},
		{"GET /api/sandbox/phones/{number}/chat", ofChannel, viewer, "", query, s.onSandbox(s.phoneChat)},
		{"GET /api/sandbox/phones/{number}/media/{message_id}", ofChannel, viewer, "", nothing, work{do: s.ofSandbox(s.phoneFile)}},
		{"POST /api/sandbox/phones/{number}/send", ofChannel, support, "", body, s.onSandbox(s.sayOnce(s.sendAsPhone))},
		{"POST /api/sandbox/phones/{number}/group", ofChannel, support, "", body, s.onSandbox(s.changeGroupAsPhone)},
		{"POST /api/sandbox/phones/{number}/call", ofChannel, support, "", body, s.onSandbox(s.callAsPhone)},
		{"POST /api/sandbox/phones/{number}/read", ofChannel, support, "", optionalBody, s.onSandbox(s.readAsPhone)},
		{"POST /api/sandbox/phones/{number}/open", ofChannel, support, "", body, s.onSandbox(s.sayOnce(s.openAsPhone))},
		{"GET /api/sandbox/faults", ofChannel, viewer, "", nothing, s.onSandbox(s.listFaults)},
		{"POST /api/sandbox/faults", ofChannel, operator, "", body, s.onSandbox(s.addFault)},
		{"DELETE /api/sandbox/faults", ofChannel, operator, "", nothing, s.onSandbox(s.clearFaults)},
		{"POST /api/sandbox/clock", ofChannel, operator, "sandbox.clock", body, s.onSandbox(s.moveClock)},
		{"GET /api/sandbox/listeners", ofChannel, viewer, "", query, s.onSandbox(s.listeners)},
		{"DELETE /api/sandbox", ofChannel, operator, "sandbox.reset", nothing, s.onSandbox(s.resetSandbox)},
	}
}

// manageChannelRoutes lists what the management API does with channels.
func manageChannelRoutes(s *server) []row {
	return []row{
		{"GET /api/manage/channels", ofAdmin, viewer, "", query, handle(s.listChannels)},
		{"POST /api/manage/channels", ofAdmin, operator, "channel.create", body, handleCreated(s.createChannel)},
		{"GET /api/manage/channels/{code}", ofAdmin, viewer, "", nothing, handle(s.readChannel)},
		{"PATCH /api/manage/channels/{code}", ofAdmin, operator, "channel.change", body, handle(s.changeChannel)},
		{"DELETE /api/manage/channels/{code}", ofAdmin, operator, "channel.delete", nothing,
			handleAs(http.StatusAccepted, s.deleteChannel)},
		{"POST /api/manage/channels/{code}/start", ofAdmin, operator, "channel.start", nothing, handle(s.startChannel)},
		{"POST /api/manage/channels/{code}/stop", ofAdmin, operator, "channel.stop", nothing, handle(s.stopChannel)},
		{"POST /api/manage/channels/{code}/pair", ofAdmin, operator, "channel.pair", optionalBody, handle(s.pairChannel)},
		{"POST /api/manage/channels/{code}/pairing/passkey", ofAdmin, operator, "channel.pair", body, handle(s.answerPasskey)},
		{"GET /api/manage/channels/{code}/pairing", ofAdmin, operator, "", nothing, handle(s.readPairing)}, // it has the code to scan
		{"POST /api/manage/channels/{code}/pair-link", ofAdmin, operator, "channel.pair_link", nothing, handle(s.makePairLink)},
		{"POST /api/manage/channels/{code}/go-live", ofAdmin, operator, "channel.go_live", body, handle(s.goLive)},
		{"PUT /api/manage/channels/{code}/credentials", ofAdmin, operator, "channel.credentials", body, handle(s.changeAccount)},
		{"POST /api/manage/channels/{code}/logout", ofAdmin, operator, "channel.logout", nothing, handle(s.logoutChannel)},
		{"GET /api/manage/channels/{code}/secret", ofAdmin, operator, "channel.show_secret", nothing,
			ofSecret(s.channelSecret, s.showSecret)},
		{"POST /api/manage/channels/{code}/secret/rotate", ofAdmin, operator, "channel.rotate_secret", nothing,
			ofSecret(s.channelSecret, s.rotateSecret)},
		{"GET /api/manage/channels/{code}/timeline", ofAdmin, viewer, "", query, handle(s.channelTimeline)},
		{"GET /api/manage/channels/{code}/requests", ofAdmin, viewer, "", query, handle(s.listRequests)},
		{"GET /api/manage/channels/{code}/chats", ofAdmin, viewer, "", query, handle(s.listChats)},
		{"GET /api/manage/channels/{code}/chats/{chat}", ofAdmin, viewer, "", query, handle(s.readChat)},
	}
}

func manageRoutes(s *server) []row {
	return []row{
		{"GET /api/manage/deletions", ofAdmin, viewer, "", nothing, handle(s.listDeletions)},
		{"GET /api/manage/tokens", ofAdmin, viewer, "", nothing, handle(s.listTokens)},
		{"POST /api/manage/tokens", ofAdmin, owner, "token.create", body, handleCreated(s.createToken)},
		{"PATCH /api/manage/tokens/{id}", ofAdmin, owner, "token.change", body, handle(s.changeToken)},
		{"DELETE /api/manage/tokens/{id}", ofAdmin, owner, "token.revoke", nothing, handle(s.revokeToken)},
		{"POST /api/manage/signing-key/rotate", ofAdmin, owner, "token.rotate_key", optionalBody, handle(s.rotateSigningKey)},
		{"POST /api/manage/sign-in-link", ofAdmin, viewer, "session.link", optionalBody, handle(s.makeSignInLink)}, // for the own role
		{"GET /api/manage/audit", ofAdmin, viewer, "", query, handle(s.listAudit)},
		{"GET /api/manage/alerts", ofAdmin, viewer, "", query, handle(s.listAlerts)},
		{"POST /api/manage/alerts", ofAdmin, operator, "alert.create", body, handleCreated(s.createAlert)},
		{"PUT /api/manage/alerts/{id}", ofAdmin, operator, "alert.change", body, handle(s.replaceAlert)},
		{"DELETE /api/manage/alerts/{id}", ofAdmin, operator, "alert.delete", nothing, handle(s.deleteAlert)},
		{"POST /api/manage/alerts/{id}/test", ofAdmin, operator, "alert.test", nothing, handle(s.testAlert)},
		{"GET /api/manage/sessions", ofAdmin, viewer, "", nothing, handle(s.listSessions)}, // the own ones; an owner sees all
		{"DELETE /api/manage/sessions", ofAdmin, viewer, "session.end_others", nothing, handle(s.endOtherSessions)},
		{"DELETE /api/manage/sessions/{id}", ofAdmin, viewer, "session.end", nothing, handle(s.endSession)},
		{"GET /api/manage/me", ofAdmin, viewer, "", nothing, handle(s.readMe)},
		{"GET /api/manage/listen-secret", ofAdmin, operator, "server.show_listen_secret", nothing, ofSecret(listenSecret, s.showSecret)},
		{"GET /api/manage/webhooks", ofAdmin, viewer, "", nothing, handle(s.listWebhooks)},
		{"POST /api/manage/webhooks", ofAdmin, operator, "webhook.create", body, handleCreated(s.createWebhook)},
		{"GET /api/manage/webhooks/{id}", ofAdmin, viewer, "", nothing, handle(s.readWebhook)},
		{"PATCH /api/manage/webhooks/{id}", ofAdmin, operator, "webhook.change", body, handle(s.changeWebhook)},
		{"DELETE /api/manage/webhooks/{id}", ofAdmin, operator, "webhook.delete", nothing, handle(s.deleteWebhook)},
		{"POST /api/manage/webhooks/{id}/retry", ofAdmin, operator, "webhook.retry", nothing, handle(s.retryWebhook)},
		{"POST /api/manage/webhooks/{id}/test", ofAdmin, operator, "webhook.test", nothing, handle(s.testWebhook)},
		{"GET /api/manage/webhooks/{id}/secret", ofAdmin, operator, "webhook.show_secret", nothing,
			ofSecret(s.webhookSecret, s.showSecret)},
		{"POST /api/manage/webhooks/{id}/rotate", ofAdmin, operator, "webhook.rotate_secret", nothing,
			ofSecret(s.webhookSecret, s.rotateSecret)},
		{"GET /api/manage/deliveries", ofAdmin, viewer, "", query, handle(s.listDeliveries)},
		{"GET /api/manage/deliveries/export", ofAdmin, viewer, "delivery.export", query, work{do: s.exportDeliveries}}, // like reading
		{"GET /api/manage/deliveries/{id}", ofAdmin, viewer, "", nothing, handle(s.readDelivery)},
		{"POST /api/manage/deliveries/{id}/retry", ofAdmin, operator, "delivery.retry", nothing, handle(s.retryDelivery)},
		{"POST /api/manage/deliveries/replay", ofAdmin, operator, "delivery.replay", body, handle(s.replayDeliveries)},

		{"GET /api/manage/chats", ofAdmin, viewer, "", query, handle(s.listChats)},
		{"GET /api/manage/contacts/{contact}", ofAdmin, viewer, "", nothing, handle(s.readContact)},
		{"GET /api/manage/messages", ofAdmin, viewer, "", query, handle(s.listMessages)},
		{"GET /api/manage/messages/export", ofAdmin, viewer, "message.export", query, work{do: s.exportMessages}},
		{"GET /api/manage/messages/{message_id}", ofAdmin, viewer, "", query, handle(s.readMessage)},
		{"GET /api/manage/messages/{message_id}/media", ofAdmin, viewer, "", query, work{do: s.readMessageFile}},
		{"GET /api/manage/find", ofAdmin, viewer, "", query, handle(s.findByID)},
		{"GET /api/manage/otp", ofAdmin, viewer, "", query, handle(s.listOTPs)},
		{"GET /api/manage/overview", ofAdmin, viewer, "", query, handle(s.readOverview)},
		{"GET /api/manage/stats", ofAdmin, viewer, "", query, handle(s.readStats)},
		{"GET /api/manage/server", ofAdmin, viewer, "", nothing, handle(s.readServer)},
		{"GET /api/manage/nodes", ofAdmin, viewer, "", nothing, handle(s.listNodes)},
		{"POST /api/manage/nodes/{id}/drain", ofAdmin, operator, "node.drain", nothing, handle(s.drainNode)},
		{"GET /api/manage/doctor", ofAdmin, viewer, "", nothing, handle(s.askDoctor)},
		{"POST /api/manage/backup", ofAdmin, operator, "server.backup", nothing, handle(s.makeBackup)},
		{"GET /api/manage/backup/file", ofAdmin, owner, "server.download_backup", nothing, work{do: s.readBackup}}, // it has every key
		{"GET /api/manage/backup/now", ofAdmin, owner, "server.download_backup", nothing, work{do: s.streamBackup}},
		{"GET /api/manage/diagnostics", ofAdmin, operator, "server.diagnostics", nothing, work{do: s.readDiagnostics}},
		{"GET /api/manage/diagnostics/contents", ofAdmin, operator, "", nothing, handle(s.listDiagnostics)},
		{"PATCH /api/manage/networks/{network}", ofAdmin, operator, "network.change", body, handle(s.changeNetwork)},
		{"PATCH /api/manage/log-level", ofAdmin, operator, "server.log_level", body, handle(s.changeLogLevel)},

		{"GET /api/manage/events", ofAdmin, viewer, "", query, work{stream: (*route).openStream, readsLog: true}},
		{"GET /api/manage/events/recent", ofAdmin, viewer, "", query, handle(s.recentEvents)},
	}
}

func publicRoutes(s *server) []row {
	return []row{
		{"GET /livez", public, "", "", nothing, handleText(s.live)},
		{"GET /readyz", public, "", "", nothing, handleText(s.ready)},
		{"GET /metrics", public, "", "", nothing, work{handler: s.metrics()}},
		{"GET /.well-known/jwks.json", public, "", "", nothing, work{do: s.jwks}},
		{"GET /phone/{number}", public, "", "", nothing, work{handler: servePhone()}},
		{"POST /phone/{number}/send", public, "", "", body, handle(s.tap)},
		{"GET /phone.js", public, "", "", nothing, work{handler: serveFile("phone/phone.js", typeScript)}},
		{"GET /phone.css", public, "", "", nothing, work{handler: serveFile("phone/phone.css", typeStyle)}},
		{"GET /pair", public, "", "", nothing, work{handler: servePairPage()}},
		{"POST /pair/begin", public, "", "", optionalBody, handle(s.beginPairLink)},
		{"POST /pair/passkey", public, "", "", optionalBody, handle(s.answerPasskeyByLink)},
		{"GET /pair/state", public, "", "", nothing, handle(s.pairLinkState)},
		{"GET /pair.js", public, "", "", nothing, work{handler: serveFile("pair/pair.js", typeScript)}},
		{"GET /pair.css", public, "", "", nothing, work{handler: serveFile("pair/pair.css", typeStyle)}},
		{"GET /openapi.json", public, "", "", nothing, work{handler: serveFile("openapi.json", typeJSON[0])}},
		{"GET /openapi.yaml", public, "", "", nothing, work{handler: serveFile("openapi.json", "application/yaml")}}, // JSON is YAML
		{"GET /openapi-other.json", public, "", "", nothing, work{handler: serveFile("openapi-other.json", typeJSON[0])}},
		{"GET /llms.txt", public, "", "", nothing, work{handler: serveFile("docs/llms.txt", typePlain[0])}},
		{"GET /docs /docs/{$}", public, "", "", nothing, work{handler: serveDocs()}},
		{"GET /docs/{file}", public, "", "", nothing, work{handler: serveDocs()}},
	}
}
