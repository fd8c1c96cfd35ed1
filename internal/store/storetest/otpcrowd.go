package storetest

import (
	"time"

	"parley"
)

var crowdTests = map[string]func(e *env){
	"grows and is forgotten": func(e *env) {
		e.channel(main, other)
		hour := start.Add(-time.Hour)
		e.join(main, "6281200001111@c.us", true, start.Add(-time.Hour), hour.Add(-time.Hour)) // just too long ago
		e.join(main, "6281200001112@c.us", true, start.Add(-59*time.Minute), hour)
		e.join(main, "6281200002222@c.us", true, start.Add(-10*time.Minute), hour)
		e.join(main, "6281300002222@c.us", false, start.Add(-5*time.Minute), hour)
		e.join(other, "6281200003333@c.us", true, start, hour)
		e.wantCrowd(main, "6281200009999@c.us", 10, false, []time.Duration{10 * time.Minute, 59 * time.Minute}, []time.Duration{10 * time.Minute, 59 * time.Minute})
		e.wantCrowd(main, "6281200009999@c.us", 1, false, []time.Duration{10 * time.Minute}, []time.Duration{10 * time.Minute})
		e.wantCrowd(main, "6281300009999@c.us", 10, false, []time.Duration{10 * time.Minute, 59 * time.Minute}, []time.Duration{5 * time.Minute})
		e.wantCrowd(main, "6281200002222@c.us", 10, true, nil, nil)
		e.wantCrowd(main, "6281200001111@c.us", 10, false, []time.Duration{10 * time.Minute, 59 * time.Minute}, []time.Duration{10 * time.Minute, 59 * time.Minute})
		e.join(main, "6281200002222@c.us", false, start, hour) // is in it already, since the first time
		e.wantCrowd(main, "6281400009999@c.us", 10, false, []time.Duration{10 * time.Minute, 59 * time.Minute}, nil)
		e.join(main, "6281200001112@c.us", false, start, start.Add(-30*time.Minute)) // counts anew
		e.wantCrowd(main, "6281200009999@c.us", 10, false, []time.Duration{10 * time.Minute}, []time.Duration{0, 10 * time.Minute})
	},
	"alike are numbers of one length": func(e *env) {
		e.channel(main)
		hour := start.Add(-time.Hour)
		for i, contact := range []parley.ContactID{"6281200000000@c.us", "6281200009999@c.us", "62812000099999@c.us", "628120000999@c.us", "6281200010000@c.us", "6281199999999@c.us"} {
			e.join(main, contact, false, start.Add(-time.Duration(i)*time.Minute), hour)
		}
		e.wantCrowd(main, "6281200005555@c.us", 10, false, nil, []time.Duration{0, time.Minute})
		e.wantCrowd(main, "62812000091234@c.us", 10, false, nil, []time.Duration{2 * time.Minute})
		e.wantCrowd(main, "6281200015555@c.us", 10, false, nil, []time.Duration{4 * time.Minute})
	},
	"go with their channel": func(e *env) {
		e.channel(main, other)
		hour := start.Add(-time.Hour)
		e.join(main, "6281200001111@c.us", true, start, hour)
		e.join(other, "6281200001111@c.us", true, start, hour)
		e.tx(func(tx parley.Tx) error {
			_, err := tx.DeleteChannel(e.Context(), main)
			return err
		})
		e.wantCrowd(main, "6281200001111@c.us", 10, false, nil, nil)
		e.wantCrowd(other, "6281200001111@c.us", 10, true, nil, nil)
	},
}

func (e *env) join(channel parley.ChannelCode, contact parley.ContactID, fresh bool, at, since time.Time) {
	e.Helper()
	e.tx(func(tx parley.Tx) error { return tx.JoinCrowd(e.Context(), channel, contact, fresh, at, since) })
}

// wantCrowd compares a crowd by how long ago people joined it.
func (e *env) wantCrowd(channel parley.ChannelCode, contact parley.ContactID, limit int, among bool, fresh, alike []time.Duration) {
	e.Helper()
	c, err := e.store.Crowd(e.Context(), channel, contact, start.Add(-time.Hour), limit)
	e.must(err)
	if c.Among != among {
		e.Errorf("%s is in the crowd: %t", contact, c.Among)
	}
	e.wantAges("fresh", c.Fresh, fresh)
	e.wantAges("alike", c.Alike, alike)
}

func (e *env) wantAges(what string, got []time.Time, want []time.Duration) {
	e.Helper()
	ages := parley.Ages(got, start)
	if len(ages) != len(want) {
		e.Errorf("%s are %v, want %v", what, ages, want)
		return
	}
	for i := range ages {
		if ages[i] != want[i] {
			e.Errorf("%s are %v, want %v", what, ages, want)
		}
	}
}
