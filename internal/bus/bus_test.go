package bus

import (
	"sync"
	"testing"
)

func TestEverySubscriberGetsEveryValue(t *testing.T) {
	var topic Topic[int]
	a, cancelA := topic.Subscribe(3)
	b, cancelB := topic.Subscribe(3)
	defer cancelB()
	for i := range 3 {
		topic.Publish(i)
	}
	for i := range 3 {
		if got := <-a; got != i {
			t.Errorf("a got %d, want %d", got, i)
		}
		if got := <-b; got != i {
			t.Errorf("b got %d, want %d", got, i)
		}
	}
	cancelA()
	cancelA() // twice is no harm
	topic.Publish(9)
	if _, open := <-a; open {
		t.Error("a got a value after it cancelled")
	}
	if got := <-b; got != 9 {
		t.Errorf("b got %d, want 9", got)
	}
}

func TestSlowSubscriberIsCutOff(t *testing.T) {
	var topic Topic[int]
	slow, cancel := topic.Subscribe(1)
	defer cancel()
	topic.Publish(1)
	topic.Publish(2) // does not fit
	if got := <-slow; got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	if _, open := <-slow; open {
		t.Error("a slow subscriber's channel is still open")
	}
	if topic.HasSubscribers() {
		t.Error("a slow subscriber still counts")
	}
}

func TestPublishAndSubscribeTogether(t *testing.T) {
	var topic Topic[int]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				values, cancel := topic.Subscribe(1)
				topic.Publish(1)
				<-values
				cancel()
			}
		})
	}
	wg.Wait()
}

func TestGroupsAreServedOneAfterTheOther(t *testing.T) {
	var topic Topic[int]
	var all []<-chan int
	for range 7 {
		values, cancel := topic.Subscribe(1)
		defer cancel()
		all = append(all, values)
	}
	got := func() (n int) {
		for _, values := range all {
			n += len(values)
		}
		return n
	}
	var seen []int
	topic.PublishInGroups(1, 3, func() { seen = append(seen, got()) })
	if len(seen) != 2 || seen[0] != 3 || seen[1] != 6 || got() != 7 {
		t.Errorf("in the pauses %v had the value, at the end %d", seen, got())
	}
	topic.PublishInGroups(2, 3, func() {}) // nobody has room
	if topic.HasSubscribers() {
		t.Error("slow subscribers still count")
	}
}
