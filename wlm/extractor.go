package wlm

import (
	"errors"
	"fmt"
	"strings"
)

// MaxUserInfoFields is how many fields a user info text has at the most: the
// name, the backend roles, the roles, and what tenants follow.
const MaxUserInfoFields = 8

// ExtractPrincipal reads the text in which OpenSearch's security plugin hands a
// user on: name|backend_roles|roles|tenant, where the lists are separated by
// commas, and a '|' or a backslash inside of a field stands behind a backslash.
// The principal has the name and the roles; backend roles and tenants are no
// tokens of it. Fields at the end may be missing. It fails for a text without a
// name and for one whose fields are too many.
//
// Source: the review of the pull request, which names the plugin's escaping of
// its own '|'; the fields are those that its documentation lists. A comma
// inside of a role is not escaped by the plugin, so such a role cannot be
// handed on: it falls apart into two.
func ExtractPrincipal(info string) (Principal, error) {
	fields := splitPipes(info)
	if len(fields) > MaxUserInfoFields {
		return Principal{}, fmt.Errorf("user info has %d fields: at most %d", len(fields), MaxUserInfoFields)
	}
	p := Principal{User: fields[0]}
	if p.User == "" {
		return Principal{}, errors.New("user info has no name")
	}
	if len(fields) > 2 && fields[2] != "" {
		p.Roles = strings.Split(fields[2], ",")
	}
	return p, nil
}

// splitPipes splits at bare pipes and takes the escapes back. A backslash
// before anything else, or at the end, stands for itself.
func splitPipes(text string) []string {
	var fields []string
	var field strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '|' || text[i+1] == '\\'):
			i++
			field.WriteByte(text[i])
		case c == '|':
			fields = append(fields, field.String())
			field.Reset()
		default:
			field.WriteByte(c)
		}
	}
	return append(fields, field.String())
}
