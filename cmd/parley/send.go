package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"parley"
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
With --image, --file, --voice or --sticker it sends that file; TEXT is then its caption and may be left out.
- as TEXT or as the file reads stdin.`,
		Example: `  parley send demo +6281234567890 'Halo!'
  parley send demo 120363020000000001@g.us 'Foto baru' --image photo.jpg`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(file.image)+len(file.file)+len(file.voice)+len(file.sticker) > len(file.path()) {
				return fail(exitUsage, "Send one file: with --image, --file, --voice or --sticker.")
			}
			switch {
			case file.path() == "-" && slices.Contains(args, "-"):
				return fail(exitUsage, "stdin has the file or the text, not both")
			case file.isGiven() && len(args) < 3:
				return wantArgs("NUMBER", "[TEXT]")(cmd, args)
			case len(args) < 2 || len(args) == 2 && !isCode(args):
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
			for i := range args[1:] {
				if args[1+i], err = c.readText(args[1+i]); err != nil {
					return err
				}
			}
			cl, err := c.onChannel(cmd.Context(), code)
			if err != nil {
				return err
			}
			body := texts("reply_to", bareID(replyTo))
			if to.IsGroup() {
				body["group_id"] = to
			} else {
				body["contact_id"] = to
			}
			kind, err := file.addTo(cmd.Context(), c, cl, body, args[1:])
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
	cmd.Flags().StringVar(&replyTo, "reply-to", "", "the id of the message that this one replies to")
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
func (f *fileToSend) addTo(ctx context.Context, c *cli, cl *client.Client, body fields, text []string) (kind string, err error) {
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
	from, name := c.in, ""
	if f.path() != "-" {
		open, err := os.Open(f.path())
		if err != nil {
			return "", fail(exitUsage, "%v", err)
		}
		defer open.Close()
		from, name = open, filepath.Base(f.path())
	}
	id, err := cl.Upload(ctx, name, from)
	body["file"] = map[string]any{"url": id}
	return kind, err
}

// bareID is the bare id of a message, which replies name, of its full or bare one.
func bareID(id string) string {
	if ref, err := parley.ParseMessageRef(id); err == nil {
		return string(ref.ID)
	}
	return id
}
