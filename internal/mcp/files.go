package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/internal/client"
	"parley/internal/wire"
)

const (
	filesURI = "parley://files/"
	// ownChannel is in the URI of a file of the token's own channel.
	ownChannel = "-"
	// maxFile bounds a file that a model reads: it is in memory twice, and in base64.
	maxFile = 8 << 20
)

// fileURI names the file of a message as a resource.
func fileURI(channel, message string) string {
	if channel == "" {
		channel = ownChannel
	}
	return filesURI + channel + "/" + url.QueryEscape(message)
}

// addFiles adds the files of messages as resources.
func (t *tools) addFiles(s *sdk.Server) {
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "file", Title: "The file of a message", URITemplate: filesURI + "{channel}/{message}",
		Description: "A picture, a voice note or another file. The messages that tools return have its address as file.uri."}, t.readFile)
}

func (t *tools) readFile(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	channel, escaped, _ := strings.Cut(strings.TrimPrefix(uri, filesURI), "/")
	message, err := url.QueryUnescape(escaped)
	if err != nil || message == "" {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	resp, err := t.openFile(ctx, strings.TrimSuffix(channel, ownChannel), message)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.HasCode(parley.NotFound) {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file is larger than %d MiB. Fetch it from the API: GET /api/media", maxFile>>20)
	}
	contents := &sdk.ResourceContents{URI: uri, MIMEType: resp.Header.Get("Content-Type")}
	if strings.HasPrefix(contents.MIMEType, "text/") {
		contents.Text = string(data)
	} else {
		contents.Blob = data
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
}

// openFile opens the file of a message.
func (t *tools) openFile(ctx context.Context, channel, message string) (*http.Response, error) {
	if t.config.Admin {
		return t.config.API.Open(ctx, http.MethodGet, client.Path("messages", message, "media"), newQuery("channel", channel), nil, nil)
	}
	api := t.ofChannel(channel)
	var m wire.Message
	if _, err := api.Get(ctx, "/api/messages/"+url.PathEscape(message), nil, &m); err != nil {
		return nil, err
	}
	if m.Media == nil {
		return nil, &client.Error{Status: http.StatusNotFound, Code: parley.NotFound.String(), Message: "This message has no file."}
	}
	return api.Open(ctx, http.MethodGet, "/api/media/"+url.PathEscape(string(m.Media.ID)), nil, nil, nil)
}
