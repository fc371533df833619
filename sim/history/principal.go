package history

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// PrincipalKey returns a text that stands for a principal in a history and
// names nobody: one key for the user and one for the role that is charged, the
// first one that is not empty. Each is "-" if there is none. Equal names have
// equal keys, and names that differ in a byte have different ones (but for
// a chance of 1 in 2^64 a pair). Whoever sends many searches for one principal
// should keep it.
func PrincipalKey(user string, roles []string) string {
	charged := ""
	for _, role := range roles {
		if role != "" {
			charged = role
			break
		}
	}
	return nameKey(user) + "/" + nameKey(charged)
}

// SplitPrincipal returns the two keys of a principal's key, "" where there is
// none. It says whether s is such a key.
func SplitPrincipal(s string) (user, role string, ok bool) {
	user, role, ok = strings.Cut(s, "/")
	if !ok || !isNameKey(user) || !isNameKey(role) {
		return "", "", false
	}
	return strings.TrimPrefix(user, "-"), strings.TrimPrefix(role, "-"), true
}

const nameKeyBytes = 8

func nameKey(name string) string {
	if name == "" {
		return "-"
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:nameKeyBytes])
}

func isNameKey(s string) bool {
	_, err := hex.DecodeString(s)
	return s == "-" || err == nil && len(s) == 2*nameKeyBytes
}
