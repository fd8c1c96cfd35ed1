package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// Templates are simulated: a caller defines them, and they are approved at once unless the caller says otherwise.
var _ network.Templates = (*session)(nil)

func (w *world) templates(c *sqldb.Conn) (all []parley.TemplateInfo, err error) {
	var text string
	if err := c.QueryRow(`SELECT templates FROM worlds WHERE id = $1`, []any{w.id.Load()}, &text); err != nil {
		return nil, err
	}
	return all, json.Unmarshal([]byte(text), &all)
}

func (s *session) Templates(ctx context.Context) ([]parley.TemplateInfo, error) {
	return s.world.templates(s.world.net.db.Read(ctx))
}

// changeTemplates stores what change returns.
func (s *session) changeTemplates(ctx context.Context, change func([]parley.TemplateInfo) ([]parley.TemplateInfo, error)) error {
	return s.world.tx(ctx, func(tx *sqldb.Tx) error {
		all, err := s.world.templates(tx.Conn)
		if err == nil {
			all, err = change(all)
		}
		if err != nil {
			return err
		}
		text, err := json.Marshal(all)
		if err != nil {
			return err
		}
		return tx.Do(`UPDATE worlds SET templates = $1 WHERE id = $2`, string(text), s.world.id.Load())
	})
}

const maxTemplates = 250

func (s *session) CreateTemplate(ctx context.Context, t parley.TemplateInfo, _ []string) (parley.TemplateInfo, error) {
	if t.Status == "" {
		t.Status = "APPROVED"
	}
	known := false
	err := s.changeTemplates(ctx, func(all []parley.TemplateInfo) ([]parley.TemplateInfo, error) {
		before := len(all)
		all = slices.DeleteFunc(all, func(old parley.TemplateInfo) bool { return old.Name == t.Name && old.Language == t.Language })
		known = len(all) < before
		if len(all) >= maxTemplates {
			return nil, parley.Errorf(parley.BadRequest, "The channel has %d templates, which is the limit. Delete one first.", maxTemplates)
		}
		all = append(all, t)
		slices.SortFunc(all, func(a, b parley.TemplateInfo) int {
			return strings.Compare(a.Name+" "+a.Language, b.Name+" "+b.Language)
		})
		return all, nil
	})
	if err == nil && known {
		err = s.sink(ctx, network.NewTemplateNotice(t.Name, t.Language, t.Status, ""))
	}
	return t, err
}

func (s *session) DeleteTemplate(ctx context.Context, name string) error {
	return s.changeTemplates(ctx, func(all []parley.TemplateInfo) ([]parley.TemplateInfo, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(t parley.TemplateInfo) bool { return t.Name == name })
		if len(left) == len(all) {
			return nil, parley.ErrNotFound
		}
		return left, nil
	})
}

// templateRefusal returns why a message from a template is refused, or nil.
func (t *sendTx) templateRefusal(c parley.Template) (refusal, err error) {
	all, err := t.world.templates(t.tx.Conn)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(info parley.TemplateInfo) bool { return info.Name == c.Name && info.Language == c.Language })
	switch {
	case i < 0:
		return network.Refuse(parley.TemplateProblem, "There is no such template in that language. Create it with POST /api/templates."), nil
	case all[i].Status != "APPROVED":
		return network.Refuse(parley.TemplateProblem, fmt.Sprintf("The template is %s.", all[i].Status)), nil
	case len(all[i].Gaps()) != len(c.Parameters):
		return network.Refuse(parley.TemplateProblem, fmt.Sprintf("The template has %d parameters, not %d.", len(all[i].Gaps()),
			len(c.Parameters))), nil
	}
	return nil, nil
}
