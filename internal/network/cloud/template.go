package cloud

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
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

// templateLife is how long a list of templates is used before Meta is asked again.
const templateLife = 5 * time.Minute

// Templates lists the templates of the account.
func (s *session) Templates(ctx context.Context) ([]parley.TemplateInfo, error) {
	s.mu.Lock()
	all, fresh := s.templates, time.Since(s.templatesAt) < templateLife
	s.mu.Unlock()
	if fresh {
		return all, nil
	}
	a, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.d.readTemplates(ctx, a, "")
	if err != nil {
		return nil, accountError(err, "name", "cannot be read.")
	}
	all = make([]parley.TemplateInfo, len(found))
	for i, t := range found {
		all[i] = t.info()
	}
	slices.SortFunc(all, func(a, b parley.TemplateInfo) int {
		return strings.Compare(a.Name+" "+a.Language, b.Name+" "+b.Language)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.templates, s.templatesAt = all, time.Now()
	return all, nil
}

type templateComponent struct {
	Type    string         `json:"type"`
	Format  string         `json:"format,omitempty"`
	Text    string         `json:"text"`
	Example map[string]any `json:"example,omitempty"`
}

func (t reportedTemplate) info() parley.TemplateInfo {
	info := parley.TemplateInfo{Name: t.Name, Language: t.Language, Category: t.Category, Status: t.Status}
	if t.Rejected != "" && t.Rejected != "NONE" {
		info.Reason = t.Rejected
	}
	var components []templateComponent
	json.Unmarshal(t.Components, &components) // what cannot be read is not shown
	for _, c := range components {
		switch strings.ToUpper(c.Type) {
		case "HEADER":
			info.Header = c.Text
		case "BODY":
			info.Body = c.Text
		case "FOOTER":
			info.Footer = c.Text
		}
	}
	return info
}

// dropTemplates has the next list be read from Meta.
func (s *session) dropTemplates() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.templatesAt = time.Time{}
}

// CreateTemplate asks Meta to approve a template.
func (s *session) CreateTemplate(ctx context.Context, t parley.TemplateInfo, examples []string) (parley.TemplateInfo, error) {
	a, err := s.account(ctx)
	if err != nil {
		return t, err
	}
	body := templateComponent{Type: "BODY", Text: t.Body}
	format := "POSITIONAL"
	if gaps := t.Gaps(); len(gaps) > 0 && strings.Trim(gaps[0], "0123456789") != "" {
		format = "NAMED"
		named := make([]map[string]string, len(gaps))
		for i, gap := range gaps {
			named[i] = map[string]string{"param_name": gap, "example": examples[i]}
		}
		body.Example = map[string]any{"body_text_named_params": named}
	} else if len(gaps) > 0 {
		body.Example = map[string]any{"body_text": [][]string{examples[:len(gaps)]}}
	}
	components := []templateComponent{body}
	if t.Header != "" {
		components = append([]templateComponent{{Type: "HEADER", Format: "TEXT", Text: t.Header}}, components...)
	}
	if t.Footer != "" {
		components = append(components, templateComponent{Type: "FOOTER", Text: t.Footer})
	}
	var made struct{ Status, Category string }
	request := map[string]any{"name": t.Name, "language": t.Language, "category": t.Category, "parameter_format": format,
		"components": components}
	if err := s.d.do(ctx, a, http.MethodPost, a.BusinessID+"/message_templates", proof(), request, &made); err != nil {
		return t, templateError(err)
	}
	s.dropTemplates()
	t.Status = made.Status
	if made.Category != "" {
		t.Category = made.Category
	}
	return t, nil
}

// templateError is why Meta does not accept a template.
func templateError(err error) error {
	if e, ok := asGraphError(err); ok && ruleFor(e).action == fail {
		return parley.Errorf(parley.BadRequest, "Meta does not accept the template: %s", sentence(e.text()))
	}
	return accountError(err, "name", "cannot be used.")
}

func (s *session) DeleteTemplate(ctx context.Context, name string) error {
	a, err := s.account(ctx)
	if err != nil {
		return err
	}
	s.dropTemplates()
	all, err := s.Templates(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(t parley.TemplateInfo) bool { return t.Name == name }) {
		return parley.ErrNotFound
	}
	query := proof()
	query.Set("name", name)
	var done any
	if err := s.d.do(ctx, a, http.MethodDelete, a.BusinessID+"/message_templates", query, nil, &done); err != nil {
		return templateError(err)
	}
	s.dropTemplates()
	return nil
}

var _ network.Templates = (*session)(nil)
