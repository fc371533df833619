package main

import (
	"fmt"
	"os"

	"github.com/goccy/go-yaml"

	"github.com/wlmsim/wlmsim/coordinator/rest"
)

// readUsers reads a file of users: names with a bcrypt hash and roles each. All
// that is wrong with them comes back at once.
func readUsers(path string) (map[string]rest.User, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--users: %w", err)
	}
	var file map[string]struct {
		Hash  string   `yaml:"hash"`
		Roles []string `yaml:"roles"`
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("--users %s: %s", path, yaml.FormatError(err, false, true))
	}
	users := make(map[string]rest.User, len(file))
	for name, u := range file {
		users[name] = rest.User{PasswordHash: []byte(u.Hash), Roles: u.Roles}
	}
	if err := rest.CheckUsers(users); err != nil {
		return nil, fmt.Errorf("--users %s: %w", path, err)
	}
	return users, nil
}
