package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// parseLsof reads the first process of lsof's field output (-FpcLn): a line a field, p the pid, c the command, L the
// user. 0, "" when there is none.
func parseLsof(out string) (int, string) {
	pid, command, user := 0, "", ""
	for _, line := range strings.Split(out, "\n") {
		if line == "" {
			continue
		}
		switch value := line[1:]; line[0] {
		case 'p':
			if pid != 0 {
				break
			}
			pid, _ = strconv.Atoi(value)
		case 'c':
			if command == "" {
				command = value
			}
		case 'L':
			if user == "" {
				user = value
			}
		}
	}
	if pid == 0 {
		return 0, ""
	}
	words := fmt.Sprintf("%s (pid %d", strconv.QuoteToGraphic(command), pid)
	if user != "" {
		words += ", user " + strconv.QuoteToGraphic(user)
	}
	return pid, words + ")"
}
