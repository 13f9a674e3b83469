package main

func (s *server) answerWithTools(q request) (string, []toolCall) { return "", nil }
