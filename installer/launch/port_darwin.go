package launch

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// portOwner asks lsof, by its absolute path. No answer means unknown, never free.
func portOwner(ctx context.Context, port int) (int, string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/sbin/lsof", "-nP", fmt.Sprintf("-iTCP:%d", port), "-sTCP:LISTEN", "-FpcLn")
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	out, err := cmd.Output()
	if err != nil {
		return 0, ""
	}
	return parseLsof(string(out))
}
