package main

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/cobra"

	"parley/internal/client"
	"parley/internal/wire"
)

func (c *cli) send() *cobra.Command {
	var replyTo string
	var file fileToSend
	cmd := &cobra.Command{
		Use:   "send [CODE] NUMBER|GROUP TEXT",
		Short: "Send a text or a file through a running server",
		Long: `Send a text to a number or a group through a running server and print the message's id. Without a code, the
token's channel sends it.
With --image, --file, --voice or --sticker it sends that file; TEXT is then its caption and may be left out.`,
		Example: `  parley send demo +6281234567890 'Halo!'
  parley send demo 120363020000000001@g.us 'Foto baru' --image photo.jpg`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(file.image)+len(file.file)+len(file.voice)+len(file.sticker) > len(file.path()) {
				return fail(exitUsage, "Send one file: with --image, --file, --voice or --sticker.")
			}
			if file.isGiven() && len(args) < 3 {
				return wantArgs("NUMBER", "[TEXT]")(cmd, args)
			}
			if len(args) < 3 {
				return wantArgs("NUMBER", "TEXT")(cmd, args)
			}
			return wantArgs("CODE", "NUMBER", "TEXT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			code := ""
			if len(args) == 3 || file.isGiven() && len(args) == 2 && isCode(args) {
				code, args = args[0], args[1:]
			}
			to, err := chatID(args[0])
			if err != nil {
				return err
			}
			cl, err := c.onChannel(cmd.Context(), code)
			if err != nil {
				return err
			}
			body := texts("reply_to", replyTo)
			if to.IsGroup() {
				body["group_id"] = to
			} else {
				body["contact_id"] = to
			}
			kind, err := file.addTo(cmd.Context(), cl, body, args[1:])
			if err != nil {
				return c.explain(cmd.Context(), cl, err)
			}
			var sent wire.Message
			r, err := cl.Post(cmd.Context(), "/api/send-message/"+kind, body, &sent)
			if err != nil {
				return c.explain(cmd.Context(), cl, err)
			}
			err = c.print(r.Data, sent.MessageID)
			if sent.Error != nil {
				return fail(exitRefused, "%s", sent.Error)
			}
			c.hint("%s", sent.Status)
			return err
		},
	}
	cmd.Flags().StringVar(&replyTo, "reply-to", "", "the bare id of the message that this one replies to")
	cmd.Flags().StringVar(&file.image, "image", "", "send the picture in this file")
	cmd.Flags().StringVar(&file.file, "file", "", "send this file as a document")
	cmd.Flags().StringVar(&file.voice, "voice", "", "send the sound in this file as a voice note")
	cmd.Flags().StringVar(&file.sticker, "sticker", "", "send the picture in this file as a sticker: WebP, or what is converted to it")
	clientFlags(cmd)
	return cmd
}

// fileToSend has the path of a file under the kind of message that it becomes; all empty: a text is sent.
type fileToSend struct{ image, file, voice, sticker string }

func (f *fileToSend) path() string { return cmp.Or(f.image, f.file, f.voice, f.sticker) }

func (f *fileToSend) isGiven() bool { return f.path() != "" }

// isCode reports whether the first of two arguments is a channel's code and the second a number, not a number and a caption.
func isCode(args []string) bool {
	_, first := chatID(args[0])
	_, second := chatID(args[1])
	return first != nil && second == nil
}

// addTo uploads the file and adds it or the text to the body of a send. It returns the kind of message.
func (f *fileToSend) addTo(ctx context.Context, cl *client.Client, body map[string]any, text []string) (kind string, err error) {
	if !f.isGiven() {
		body["message"] = text[0]
		return "text", nil
	}
	switch {
	case f.image != "":
		kind = "image"
	case f.file != "":
		kind = "file"
	case f.voice != "":
		kind = "voice"
		if len(text) > 0 {
			return "", fail(exitUsage, "A voice note has no caption. Leave TEXT out.")
		}
	default:
		kind = "sticker"
		if len(text) > 0 {
			return "", fail(exitUsage, "A sticker has no caption. Leave TEXT out.")
		}
	}
	if len(text) > 0 {
		body["caption"] = text[0]
	}
	open, err := os.Open(f.path())
	if err != nil {
		return "", fail(exitUsage, "%v", err)
	}
	defer open.Close()
	id, err := cl.Upload(ctx, open)
	body["file"] = map[string]any{"url": id}
	return kind, err
}
