package neighbor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"slipway/installer/neighbor/record"
)

// appAnswer is a line of oMLX's control socket.
type appAnswer struct {
	OK      bool   `json:"ok"`
	State   string `json:"state"`
	PID     int    `json:"pid"`
	Message string `json:"message"`
}

// askApp sends one JSON line to an application's control socket and reads one back. A stale socket refuses.
func askApp(ctx context.Context, socket, command string) (appAnswer, error) {
	var answer appAnswer
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return answer, fmt.Errorf("the application does not answer at its control socket: %w", err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(70 * time.Second)) // its own stop waits up to 60 s
	if err := json.NewEncoder(c).Encode(map[string]string{"command": command}); err != nil {
		return answer, err
	}
	line, err := bufio.NewReader(c).ReadBytes('\n')
	if err != nil && len(line) == 0 {
		return answer, err
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return answer, fmt.Errorf("the application's answer is not the JSON that slipway knows")
	}
	if !answer.OK {
		return answer, fmt.Errorf("the application refused to %s: %s", command, plain(answer.Message))
	}
	return answer, nil
}

// stopApp first checks that the application manages this server: it may manage another one.
func stopApp(ctx context.Context, r record.Record, pid int) error {
	status, err := askApp(ctx, r.Socket, "status")
	if err != nil {
		return err
	}
	if status.PID != pid {
		return fmt.Errorf("the application manages pid %d, not %d", status.PID, pid)
	}
	_, err = askApp(ctx, r.Socket, "stop")
	return err
}
