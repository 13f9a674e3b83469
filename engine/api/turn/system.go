package turn

import "slipway/engine/text"

// laterSystem marks a system message behind the beginning.
const laterSystem = "System message:\n"

// placeSystem brings system messages to where templates take them. Those that a conversation begins with become one.
// A later one stays in its place as a user's message that says what it is: moved to the beginning, it would change
// the prefix of everything after it. Among the results of tools it is one of them, which templates write as the
// user's too: a message of its own would be a new question, and templates leave out the thinking before that.
func placeSystem(messages []text.Message) []text.Message {
	placed := make([]text.Message, 0, len(messages))
	for i, m := range messages {
		switch last := len(placed) - 1; {
		case m.Role != "system" || i == 0:
		case last == 0 && placed[0].Role == "system":
			placed[0].Content += "\n\n" + m.Content
			continue
		default:
			role := "user"
			if before := placed[last]; before.Role == "tool" || len(before.ToolCalls) > 0 {
				role = "tool"
			}
			m.Role, m.Content = role, laterSystem+m.Content
		}
		placed = append(placed, m)
	}
	return placed
}
