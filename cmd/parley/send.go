package main

import (
	"github.com/spf13/cobra"

	"parley"
)

func (c *cli) send() *cobra.Command {
	var replyTo string
	cmd := &cobra.Command{
		Use:   "send [CODE] NUMBER TEXT",
		Short: "Send a text through a running server",
		Long:  `Send a text through a running server and print the message's id. Without a code, the token's channel sends it.`,
		Example: `  parley send demo +6281234567890 'Halo!'
  parley send +6281234567890 'Halo!' --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 3 {
				return wantArgs("NUMBER", "TEXT")(cmd, args)
			}
			return wantArgs("CODE", "NUMBER", "TEXT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			code := ""
			if len(args) == 3 {
				code, args = args[0], args[1:]
			}
			number, err := digits(args[0])
			if err != nil {
				return err
			}
			cl, err := c.onChannel(cmd.Context(), code)
			if err != nil {
				return err
			}
			body := texts("reply_to", replyTo)
			body["contact_id"], body["message"] = parley.ContactOf(number), args[1]
			var sent struct {
				messageID
				Status string `json:"status"`
				Error  *struct {
					Code    string `json:"code"`
					Message string `json:"message"`
				} `json:"error"`
			}
			r, err := cl.Post(cmd.Context(), "/api/send-message/text", body, &sent)
			if err != nil {
				return c.explain(cmd.Context(), cl, err)
			}
			err = c.print(r.Data, sent.MessageID)
			if sent.Error != nil {
				return fail(exitRefused, "%s: %s", sent.Error.Code, sent.Error.Message)
			}
			c.hint("%s", sent.Status)
			return err
		},
	}
	cmd.Flags().StringVar(&replyTo, "reply-to", "", "the bare id of the message that this one replies to")
	clientFlags(cmd)
	return cmd
}
