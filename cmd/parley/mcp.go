package main

import (
	"context"

	"github.com/spf13/cobra"

	"parley/internal/client"
	"parley/internal/mcp"
)

func (c *cli) mcp() *cobra.Command {
	var channel string
	var allowSend bool
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve a language model over stdio with the Model Context Protocol",
		Long: `Serve a language model over stdin and stdout with the Model Context Protocol (MCP). A client, such as an editor or a
desktop assistant, starts this command. The model can list and read chats, search messages, see the health of
channels, find contacts by name and wait for a reply. It can send only with --allow-send, or on a sandbox channel, whose
phones are simulated; --allow-send=false forbids that too. With an admin token it reads all channels and never sends.`,
		Example: `  parley mcp --profile toko
  parley mcp --profile toko --allow-send`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := c.mcpConfig(cmd, channel, allowSend)
			if err != nil {
				return err
			}
			return mcp.Run(cmd.Context(), config, c.in, c.out)
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "the channel that tools use unless they name another (default: the token's)")
	cmd.Flags().BoolVar(&allowSend, "allow-send", false, "let the model send messages")
	settingFlags(cmd.Flags(), keyURL, keyToken, keyAdminToken)
	return cmd
}

// mcpConfig uses a token for messages if there is one, else an admin token.
func (c *cli) mcpConfig(cmd *cobra.Command, channel string, allowSend bool) (mcp.Config, error) {
	config := mcp.Config{Version: version}
	var err error
	if c.set.text(keyToken) == "" && c.set.text(keyAdminToken) != "" {
		config.Admin = true
		err = c.onServer(cmd, func(_ context.Context, api *client.Client) error { config.API = api; return nil })
	} else {
		config.API, err = c.onChannel(cmd.Context(), channel)
	}
	if err != nil {
		return config, err
	}
	switch {
	case allowSend && config.Admin:
		return config, fail(exitUsage, "--allow-send needs a token of a channel, or a Global one. An admin token sends nothing")
	case allowSend:
		config.Sending = mcp.AllChannels
	case cmd.Flags().Changed("allow-send"): // --allow-send=false
	case config.API.Origin == c.dir().DevEnv() || !config.Admin && isSimulated(cmd.Context(), config.API):
		config.Sending = mcp.SandboxOnly // nothing leaves this machine
	}
	return config, nil
}

// isSimulated reports whether the phones of a channel are simulated. In doubt they are real.
func isSimulated(ctx context.Context, api *client.Client) bool {
	var health struct {
		Simulated bool `json:"simulated"`
	}
	_, err := api.Get(ctx, "/api/channel/health", nil, &health)
	return err == nil && health.Simulated
}
