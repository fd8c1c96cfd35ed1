package api

import "context"

// attemptData is how an attempt to deliver went.
type attemptData struct {
	Code    *int   `json:"code"`
	TookMS  int64  `json:"took_ms"`
	Problem string `json:"problem"`
	Answer  string `json:"answer"`
}

// testWebhook sends a test event and answers what came back.
func (s *server) testWebhook(ctx context.Context, r *request) (envelope[attemptData], error) {
	w, err := s.Store.Webhook(ctx, r.webhookID())
	if err != nil {
		return envelope[attemptData]{}, noWebhook(err)
	}
	a, err := s.Callbacks.SendTest(ctx, w)
	if err != nil {
		return envelope[attemptData]{}, err
	}
	e := ok("The address took the event", attemptData{codeOrNil(a.Code), a.Took.Milliseconds(), a.Problem, a.Response})
	if !a.Succeeded() {
		e.Success, e.Message = false, "The address did not take the event. "+a.Problem
	}
	return e, nil
}
