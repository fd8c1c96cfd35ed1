package api

import "parley"

// meta is what a list says of its pages.
type meta struct {
	CurrentPage int64 `json:"current_page"`
	PerPage     int64 `json:"per_page"`
	Total       int64 `json:"total"`
	TotalPages  int64 `json:"total_pages"`
	HasNextPage bool  `json:"has_next_page"`
	HasPrevPage bool  `json:"has_prev_page"`
}

func metaOf(page parley.Page, total int64) *meta {
	limit := int64(page.Limit)
	return &meta{
		CurrentPage: page.Offset/limit + 1,
		PerPage:     limit,
		Total:       total,
		TotalPages:  max(1, (total+limit-1)/limit),
		HasNextPage: total-limit > page.Offset,
		HasPrevPage: page.Offset > 0,
	}
}
