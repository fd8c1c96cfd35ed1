package api

import (
	"context"
	"strconv"
	"strings"

	"parley"
	"parley/internal/api/form"
	"parley/internal/gateway"
	"parley/internal/network"
)

const (
	maxTemplateParameters = 50
	maxTemplateButtons    = 10
	maxTemplateText       = 1024
)

func readTemplateName(f form.Form) string {
	return f.Matching("name", templateName, "the name of a template: lower-case letters, digits and _")
}

// readTemplate reads a message that is made from a template.
func readTemplate(f form.Form) outgoing {
	t := parley.Template{Name: readTemplateName(f), Language: f.Text("language", 2, 15)}
	if f.IsObject("parameters") {
		inside, _ := f.Object("parameters", false)
		for _, name := range inside.Names() {
			t.Parameters = append(t.Parameters, parley.TemplateParameter{Name: name, Text: inside.Text(name, 1, maxTemplateText)})
		}
		if len(t.Parameters) > maxTemplateParameters {
			f.Fail("parameters", "must have at most %d members.", maxTemplateParameters)
		}
	} else {
		f.List("parameters", 0, maxTemplateParameters, false, func(f form.Form, index string) {
			t.Parameters = append(t.Parameters, parley.TemplateParameter{Text: f.Text(index, 1, maxTemplateText)})
		})
	}
	var p outgoing
	if inside, given := f.Object("header", false); given && inside.Has("file") {
		p, t.Media = readFileField(inside), &parley.Media{}
		if inside.Has("text") {
			inside.Fail("text", "must not be given together with a file.")
		}
	} else if given {
		t.Header = inside.Text("text", 1, maxTemplateText)
	}
	f.List("buttons", 0, maxTemplateButtons, false, func(f form.Form, index string) {
		inside, _ := f.Object(index, true)
		b := parley.TemplateButton{Index: int(inside.RequiredWhole("index", 0, maxTemplateButtons-1)),
			Text: inside.OptionalText("text", 1, maxTemplateText), Payload: inside.OptionalText("payload", 1, maxTemplateText)}
		if (b.Text == "") == (b.Payload == "") {
			inside.Fail("text", "or payload is required, and not both.")
		}
		t.Buttons = append(t.Buttons, b)
	})
	if f.Has("group_id") {
		f.Fail("group_id", "must not be given: templates go to contacts.")
	}
	p.content, p.replyTo, p.form = t, f.ReplyTo(), f
	return p
}

// sendingTemplate is the work of sending a template. History shows its text with the parameters, if the network tells it.
func (s *server) sendingTemplate() work {
	w := s.sending(readTemplate)
	draft := w.draft
	w.draft = func(ctx context.Context, r *request) (gateway.Draft, error) {
		d, err := draft(ctx, r)
		t, isTemplate := d.Content.(parley.Template)
		if err != nil || !isTemplate {
			return d, err
		}
		session, err := s.config.Gateway.Templates(r.channel.Code)
		if parley.ToCode(err) == parley.NotSupported {
			return d, err
		}
		texts := make([]string, len(t.Parameters))
		for i, p := range t.Parameters {
			texts[i] = p.Text
		}
		t.Body = strings.TrimSpace("[" + t.Name + "] " + strings.Join(texts, ", "))
		if err == nil {
			all, err := session.Templates(ctx)
			if err != nil { // it can be sent nevertheless
				s.config.Log.Warn("templates cannot be read", "channel", r.channel.Code, "error", err)
			}
			for _, info := range all {
				if info.Name == t.Name && info.Language == t.Language && info.Body != "" {
					t.Body = info.Fill(t.Parameters)
				}
			}
		}
		d.Content = t
		return d, nil
	}
	return w
}

func (s *server) templates(r *request) (network.Templates, error) {
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s.config.Gateway.Templates(r.channel.Code)
}

func (s *server) listTemplates(ctx context.Context, r *request) (any, error) {
	session, err := s.templates(r)
	if err != nil {
		return nil, err
	}
	all, err := session.Templates(ctx)
	return ok("OK", append([]parley.TemplateInfo{}, all...)), err
}

func (s *server) createTemplate(ctx context.Context, r *request) (any, error) {
	t := parley.TemplateInfo{Name: readTemplateName(r.Form), Language: r.Text("language", 2, 15),
		Category: r.Choice("category", false, "UTILITY", "MARKETING"), Header: r.OptionalText("header", 1, 60),
		Body: r.Text("body", 1, maxTemplateText), Footer: r.OptionalText("footer", 1, 60)}
	if r.Has("status") {
		t.Status = r.Choice("status", true, "PENDING", "APPROVED", "REJECTED", "PAUSED", "DISABLED")
	}
	var examples []string
	r.List("examples", 0, maxTemplateParameters, false, func(f form.Form, index string) {
		examples = append(examples, f.Text(index, 1, maxTemplateText))
	})
	if t.Status != "" && !s.config.Gateway.Network(r.channel.Network).Simulated {
		r.Fail("status", "can be set on the sandbox only.")
	}
	for gaps := t.Gaps(); len(examples) < len(gaps); {
		examples = append(examples, "example "+strconv.Itoa(len(examples)+1))
	}
	session, err := s.templates(r)
	if err != nil {
		return nil, err
	}
	t, err = session.CreateTemplate(ctx, t, examples)
	return ok("Template created", t), err
}

func (s *server) deleteTemplate(ctx context.Context, r *request) (any, error) {
	session, err := s.templates(r)
	if err == nil {
		err = session.DeleteTemplate(ctx, r.http.PathValue("name"))
	}
	return ok("Template deleted", struct{}{}), notFoundAs(err, errNoTemplate)
}

var errNoTemplate = parley.Errorf(parley.NotFound, "There is no template with this name.")
