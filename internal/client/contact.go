package client

import (
	"context"
	"net/url"
	"strings"
)

// Spellings returns a contact id and, if it differs, the one that the network uses: events and histories have that one. A
// channel that is not connected cannot say.
func (c *Client) Spellings(ctx context.Context, contactID string) []string {
	ids := []string{contactID}
	var checked struct {
		ContactID string `json:"contact_id"`
	}
	number := strings.TrimSuffix(contactID, "@c.us")
	_, err := c.Get(ctx, "/api/channel/check-phone-number", url.Values{"phone": {number}}, &checked)
	if err == nil && checked.ContactID != "" && checked.ContactID != contactID {
		ids = append(ids, checked.ContactID)
	}
	return ids
}
