// A program that uses the generated client: it sends a text, reads the chat, and follows a 422.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

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
	return nil
}
