package memory

import (
	"errors"
	"testing"
)

func take(t *testing.T, p *Pages) int32 {
	t.Helper()
	page, err := p.Take()
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestSharedPageIsFreeOnlyWhenTheLastLeaves(t *testing.T) {
	p := NewPages(2)
	a, b := take(t, p), take(t, p)
	if a == b {
		t.Fatal("one page twice")
	}
	if _, err := p.Take(); !errors.Is(err, ErrNoPages) {
		t.Fatalf("a third page of two: error %v", err)
	}
	p.Share([]int32{a})
	p.Drop([]int32{a})
	if p.Free() != 0 {
		t.Fatal("freed while someone refers to it")
	}
	p.Drop([]int32{a})
	if got := take(t, p); got != a {
		t.Fatalf("page %d, wanted the freed %d", got, a)
	}
}

func TestOnlyASequenceAtTheHighWaterMarkAppendsInPlace(t *testing.T) {
	p := NewPages(4)
	page := take(t, p)
	p.Wrote(page, 100)
	p.Share([]int32{page}) // a restore point at 100
	if !p.MayWrite(page, 100) {
		t.Fatal("the writer must continue in place: no sequence has more than 100")
	}
	p.Wrote(page, 150)
	if p.MayWrite(page, 100) {
		t.Fatal("a branch at 100 would overwrite positions 100 to 150 of the other")
	}
	if p.MayWrite(page, 149) || !p.MayWrite(page, 150) {
		t.Fatal("the mark is not at 150")
	}
	p.Drop([]int32{page})
	if !p.MayWrite(page, 10) {
		t.Fatal("who is alone may go back")
	}
	p.Wrote(page, 20)
	p.Share([]int32{page})
	if !p.MayWrite(page, 20) {
		t.Fatal("what lay beyond was dropped when its owner went back alone")
	}
}

func TestMisuseOfAFreePagePanics(t *testing.T) {
	for name, misuse := range map[string]func(*Pages){
		"share": func(p *Pages) { p.Share([]int32{0}) },
		"drop":  func(p *Pages) { p.Drop([]int32{0}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of a free page went through", name)
				}
			}()
			misuse(NewPages(1))
		}()
	}
}
