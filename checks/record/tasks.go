package record

import (
	"context"
	"fmt"

	"slipway/checks/client"
)

// Task is one thing to do. Request is the hash of its request where there is one: a run that continues must ask the
// same.
type Task struct {
	ID      string
	Request string
	Do      func(ctx context.Context) (Answer, error)
}

// Run does the tasks that have no answer yet, in order, and returns the answers of all. A fault ends it; the answers so
// far are kept.
func (b *Book) Run(ctx context.Context, tasks []Task, progress func(done, of int)) ([]Answer, error) {
	var all []Answer
	for i, task := range tasks {
		if progress != nil {
			progress(i, len(tasks))
		}
		a, ok := b.Find(task.ID)
		if ok && task.Request != "" && a.Request != task.Request {
			return all, &OtherSetupError{
				b.name, []string{fmt.Sprintf("task %s asked something else there: the server counts tokens in "+
					"another way now", task.ID)}}
		}
		if !ok {
			var err error
			if a, err = task.Do(ctx); err != nil {
				return all, err
			}
			a.Task = task.ID
			if err := b.Add(a); err != nil {
				return all, err
			}
		}
		all = append(all, a)
	}
	if progress != nil {
		progress(len(tasks), len(tasks))
	}
	return all, nil
}

// From fills an answer with what a reply holds.
func From(reply *client.Reply) Answer {
	return Answer{Request: reply.Asked.SHA256(), Text: reply.Text, Reasoning: reply.Reasoning, Calls: reply.Calls,
		Finish: reply.Finish,
		Usage:  reply.Usage, Seconds: reply.Ended.Sub(reply.Started).Seconds(), Doubts: reply.Doubts(), Parts: []Part{}}
}

// Asks is the task of one request that is scored by its text.
func Asks(s *client.Server, id string, r client.Request, score func(reply *client.Reply, a *Answer)) Task {
	return Task{ID: id, Request: r.SHA256(), Do: func(ctx context.Context) (Answer, error) {
		reply, err := s.Chat(ctx, r)
		if err != nil {
			return Answer{}, err
		}
		a := From(reply)
		score(reply, &a)
		return a, nil
	}}
}
