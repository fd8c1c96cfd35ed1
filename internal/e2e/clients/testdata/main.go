// A program that uses the generated client: it sends a text, reads the chat, and follows a 422.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"parley/internal/e2e/clients/client"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	token := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("PARLEY_TOKEN"))
		return nil
	}
	parley, err := client.NewClientWithResponses(os.Getenv("PARLEY_URL"), client.WithRequestEditorFn(token))
	if err != nil {
		return err
	}
	ayu := client.ToContact("6281234567890@c.us")

	sent, err := parley.SendTextWithResponse(ctx, nil, client.TextRequest{ContactId: &ayu, Message: "Hello"})
	if err != nil {
		return err
	}
	if sent.JSON200 == nil || !sent.JSON200.Success {
		return fmt.Errorf("send: %s %s", sent.Status(), sent.Body)
	}
	fmt.Println("sent", sent.JSON200.Data.MessageId, sent.JSON200.Data.Status)

	chat, err := parley.ReadChatWithResponse(ctx, &client.ReadChatParams{ContactId: &ayu})
	if err != nil {
		return err
	}
	if chat.JSON200 == nil {
		return fmt.Errorf("read: %s %s", chat.Status(), chat.Body)
	}
	if first := chat.JSON200.Data[0]; first.Body != "Hello" || first.MessageId != sent.JSON200.Data.MessageId {
		return fmt.Errorf("read: %s", chat.Body)
	}
	fmt.Println("read", chat.JSON200.Meta.Total)

	wrong, err := parley.SendTextWithResponse(ctx, nil, client.TextRequest{ContactId: new(client.ToContact("+62 812"))})
	if err != nil {
		return err
	}
	if wrong.JSON422 == nil || wrong.JSON422.Code != client.ErrorCodeInvalid {
		return fmt.Errorf("a wrong contact: %s %s", wrong.Status(), wrong.Body)
	}
	fields := []string{}
	for field := range wrong.JSON422.Errors {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	if !slices.Equal(fields, []string{"contact_id", "message"}) {
		return errors.New("the wrong fields are " + fmt.Sprint(fields))
	}
	fmt.Println("wrong", fields)
	return runMore(ctx, parley, ayu, sent.JSON200.Data.MessageId)
}

// runMore makes seven more calls. An event is known by its type.
func runMore(ctx context.Context, parley *client.ClientWithResponses, ayu client.ToContact, id client.MessageId) error {
	health, err := parley.ChannelHealthWithResponse(ctx, nil)
	if err != nil || health.JSON200 == nil || health.JSON200.Data.Status != client.ChannelStatusWORKING {
		return fmt.Errorf("health: %v %v", err, health)
	}
	liked, err := parley.ReactWithResponse(ctx, nil, client.ReactionRequest{MessageId: id, Reaction: "👍"})
	if err != nil || liked.JSON200 == nil {
		return fmt.Errorf("react: %v %v", err, liked)
	}
	poll, err := parley.SendPollWithResponse(ctx, nil, client.PollRequest{ContactId: &ayu, Title: "When?", Options: []string{"Now", "Later"}})
	if err != nil || poll.JSON200 == nil {
		return fmt.Errorf("poll: %v %v", err, poll)
	}
	uploaded, err := parley.UploadMediaWithBodyWithResponse(ctx, nil, "text/plain", strings.NewReader("Hello"))
	if err != nil || uploaded.JSON200 == nil {
		return fmt.Errorf("upload: %v %v", err, uploaded)
	}
	file, err := parley.ReadMediaWithResponse(ctx, uploaded.JSON200.Data.Id, nil)
	if err != nil || string(file.Body) != "Hello" {
		return fmt.Errorf("download: %v %v", err, file)
	}
	thanks := client.PhoneSendRequest{Type: client.PhoneSendRequestTypeText, Message: new("Thank you!")}
	if _, err := parley.SendAsPhoneWithResponse(ctx, "6281234567890", nil, thanks); err != nil {
		return err
	}
	events := &client.ListRecentEventsResponse{}
	for events.JSON200 == nil || len(events.JSON200.Data) == 0 { // an inbound message takes a moment
		var err error
		events, err = parley.ListRecentEventsWithResponse(ctx, &client.ListRecentEventsParams{Types: new("message.received")})
		if err != nil || events.JSON200 == nil {
			return fmt.Errorf("events: %v %v", err, events)
		}
	}
	event, err := events.JSON200.Data[0].ValueByDiscriminator()
	if received, ok := event.(client.MessageReceivedEvent); err != nil || !ok || received.Data.Body != "Thank you!" {
		return fmt.Errorf("events: %v %v", err, event)
	}
	link, err := parley.RequestLinkWithResponse(ctx, nil, client.LinkRequest{ContactId: client.AnyContactId(ayu), Expires: 300})
	if err != nil || link.JSON200 == nil {
		return fmt.Errorf("link: %v %v", err, link)
	}
	state, err := parley.ReadLinkWithResponse(ctx, link.JSON200.Data.Id, nil)
	if err != nil || state.JSON200 == nil {
		return fmt.Errorf("link: %v %v", err, state)
	}
	fmt.Println("10 link", state.JSON200.Data.Status)
	return nil
}
