package bubble_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entrances returns the files without tests under a folder that import
// testing/synctest.
func entrances(t *testing.T, root string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			if spec.Path.Value == `"testing/synctest"` {
				found = append(found, filepath.ToSlash(path))
			}
		}
		return nil
	}))
	return found
}

func TestOneFileEntersABubble(t *testing.T) {
	require.Equal(t, []string{"../../sim/bubble/bubble.go"}, entrances(t, "../.."))
}

func TestAnotherEntranceIsFound(t *testing.T) {
	planted := filepath.Join(t.TempDir(), "another.go")
	require.NoError(t, os.WriteFile(planted, []byte("package another\n\nimport _ \"testing/synctest\"\n"), 0o600))
	require.Equal(t, []string{filepath.ToSlash(planted)}, entrances(t, filepath.Dir(planted)))
}
