package cloud

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// reportedTemplate is a template as Meta stores it.
type reportedTemplate struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Language   string          `json:"language"`
	Status     string          `json:"status"`
	Category   string          `json:"category"`
	Format     string          `json:"parameter_format"`
	Rejected   string          `json:"rejected_reason"`
	Components json.RawMessage `json:"components"`
}

// maxTemplatePages bounds a list of templates: an account may have a few thousand.
const maxTemplatePages = 100

// readTemplates lists the templates of an account, all or those with a name.
func (d *Driver) readTemplates(ctx context.Context, a account, name string) (all []reportedTemplate, err error) {
	query := url.Values{"fields": {"id,name,language,status,category,parameter_format,rejected_reason,components"}, "limit": {"100"}}
	if name != "" {
		query.Set("name", name)
	}
	for range maxTemplatePages {
		var page struct {
			Data   []reportedTemplate
			Paging struct {
				Next    string
				Cursors struct{ After string }
			}
		}
		if err := d.do(ctx, a, http.MethodGet, a.BusinessID+"/message_templates", query, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Data...)
		if page.Paging.Next == "" || page.Paging.Cursors.After == "" {
			break
		}
		query.Set("after", page.Paging.Cursors.After)
	}
	return all, nil
}
