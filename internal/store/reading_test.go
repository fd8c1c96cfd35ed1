package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// TestSearchesAtOnce has more searches than there are connections, each of which finds more than it may return.
func TestSearchesAtOnce(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "parley.db"))
	addMain(t, db)
	for i := range 20 {
		m := benchText(int64(i))
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddMessage(t.Context(), &m) }); err != nil {
			t.Fatal(err)
		}
	}
	var searching sync.WaitGroup
	for range 16 {
		searching.Go(func() {
			for range 10 {
				page, err := db.FindMessages(t.Context(), parley.MessageQuery{Text: "e", Limit: 1})
				if err != nil || len(page.Messages) != 1 {
					t.Errorf("%d messages: %v", len(page.Messages), err)
					return
				}
			}
		})
	}
	searching.Wait()
}

// TestReadersHonourTheContext calls everything that reads with a context that has ended.
func TestReadersHonourTheContext(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "parley.db"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	reader := reflect.TypeFor[store.Reader]()
	for i := range reader.NumMethod() {
		method := reader.Method(i)
		t.Run(method.Name, func(t *testing.T) {
			args := []reflect.Value{reflect.ValueOf(ended)}
			for n := 2; n < method.Type.NumIn(); n++ { // behind the receiver and the context
				args = append(args, anything(method.Type.In(n)))
			}
			results := reflect.ValueOf(db).MethodByName(method.Name).Call(args)
			err, _ := results[len(results)-1].Interface().(error)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it answers %v", err)
			}
		})
	}
}

// anything is an argument that makes a call look into the database.
func anything(kind reflect.Type) reflect.Value {
	v := reflect.New(kind).Elem()
	switch {
	case kind == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Now()))
	case kind == reflect.TypeFor[parley.Page]():
		v.Set(reflect.ValueOf(parley.Page{Limit: 1}))
	case kind.Kind() == reflect.Int || kind.Kind() == reflect.Int64:
		v.SetInt(1)
	case kind.Kind() == reflect.String:
		v.SetString("x")
	case kind == reflect.TypeFor[[]parley.Message]():
		v.Set(reflect.ValueOf([]parley.Message{{Content: parley.Text{}}}))
	case kind == reflect.TypeFor[*parley.Message]():
		v.Set(reflect.ValueOf(&parley.Message{ReplyTo: "x"}))
	case kind.Kind() == reflect.Pointer:
		v.Set(reflect.New(kind.Elem()))
	case kind.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(kind, 1, 1))
	case kind.Kind() == reflect.Func:
		v.Set(reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value { panic(fmt.Sprint("called: ", kind)) }))
	}
	return v
}
