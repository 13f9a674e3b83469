package machine

import "testing"

const mountTable = `22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:26 / /home rw,nosuid shared:5 - btrfs /dev/sdb rw
31 30 8:17 / /home/a/my\040stick rw shared:6 - exfat /dev/sdc1 rw
32 22 0:30 / /mnt rw - nfs4 server:/x rw
33 22 8:1 / /mnt rw master:2 propagate_from:3 - xfs /dev/sda1 rw
not a line of a mount table
`

func TestMountOfAPathIsTheDeepest(t *testing.T) {
	for path, want := range map[string][2]string{
		"/usr":                   {"/", "ext4"},
		"/homework":              {"/", "ext4"},
		"/home":                  {"/home", "btrfs"},
		"/home/a/x":              {"/home", "btrfs"},
		"/home/a/my stick/.slip": {"/home/a/my stick", "exfat"},
		"/mnt/y":                 {"/mnt", "xfs"},
	} {
		mount, kind := mountIn(mountTable, path)
		if mount != want[0] || kind != want[1] {
			t.Errorf("%s: %s %s, want %s", path, mount, kind, want)
		}
	}
	if mount, kind := mountIn("", "/x"); mount != "" || kind != "" {
		t.Errorf("an empty table: %s %s", mount, kind)
	}
}
