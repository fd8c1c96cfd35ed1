package parley

import "testing"

func TestRoleIncludes(t *testing.T) {
	for i, own := range Roles {
		for j, least := range Roles {
			if got := own.Includes(least); got != (i >= j) {
				t.Errorf("%s includes %s: %t", own, least, got)
			}
		}
	}
	for _, unknown := range []Role{"", "root", "OWNER"} {
		if unknown.Includes(Viewer) || Owner.Includes(unknown) {
			t.Errorf("the role %q includes, or is included", unknown)
		}
		if _, err := ParseRole(string(unknown)); err == nil {
			t.Errorf("ParseRole(%q) is no error", unknown)
		}
	}
}
