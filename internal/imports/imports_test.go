package imports_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const module = "github.com/wlmsim/wlmsim/"

// mayImport says, for a folder and what is below it, which folders of the
// module it may import beside its own. The longest folder that fits counts.
var mayImport = map[string][]string{
	"cluster":          {},
	"cluster/probe":    {"cluster"},
	"cluster/wire":     {"cluster"},
	"cluster/task":     {"cluster", "internal/chain"},
	"cluster/replica":  {"cluster", "cluster/probe", "cluster/wire"},
	"cluster/gossip":   {"cluster", "cluster/probe", "cluster/wire"},
	"applier":          {"cluster", "cluster/probe", "cluster/wire"},
	"wlm":              {"cluster", "cluster/probe", "cluster/wire"},
	"datanode":         {"cluster", "cluster/probe", "cluster/wire", "cluster/task", "internal/chain"},
	"coordinator":      {"cluster", "cluster/probe", "cluster/wire", "cluster/task", "wlm"},
	"coordinator/rest": {"cluster", "cluster/probe", "cluster/wire", "cluster/task", "wlm", "coordinator"},
	"sim/node": {"cluster", "cluster/probe", "cluster/wire", "cluster/task", "cluster/replica", "cluster/gossip", "applier", "wlm", "datanode",
		"coordinator", "coordinator/rest"},
	"sim":      {"*", "!cmd"},
	"cmd":      {"*"},
	"internal": {},
}

// standardOnly are the packages whose code, tests aside, needs no third party.
var standardOnly = []string{"cluster", "cluster/probe", "cluster/wire", "cluster/task", "applier", "wlm", "datanode", "coordinator"}

// importers says which package alone imports a third-party module or package.
// A prefix covers what begins with it: raft covers raft-boltdb.
var importers = map[string]string{
	"github.com/hashicorp/raft":         "cluster/replica",
	"go.etcd.io/bbolt":                  "cluster/replica",
	"github.com/boltdb":                 "cluster/replica",
	"github.com/hashicorp/memberlist":   "cluster/gossip",
	"github.com/anishathalye/porcupine": "sim/check",
}

// violations lists every import of the module's files that breaks a promise,
// sorted by file.
func violations(tree fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(tree, name)
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			for _, why := range refuse(name, imported) {
				found = append(found, fmt.Sprintf("%s imports %s: %s", name, imported, why))
			}
		}
		return nil
	})
	return found, err
}

// skip leaves out what is no part of the module.
func skip(tree fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(dir, "go.mod")); err == nil { // a module of its own
		return fs.SkipDir
	}
	return nil
}

// refuse returns why a file must not import a path.
func refuse(file, imported string) (why []string) {
	importer, test := path.Dir(file), strings.HasSuffix(file, "_test.go")
	if imported == "testing/synctest" && !test && importer != "sim/bubble" {
		why = append(why, "only tests and sim/bubble enter a bubble")
	}
	if folder, own := strings.CutPrefix(imported, module); own {
		switch {
		case test && below(folder, "sim") && !below(importer, "sim") && !below(importer, "cmd"):
			why = append(why, "only sim and cmd know sim")
		case !test && !allowed(importer, folder):
			why = append(why, "imports point the other way")
		}
		return why
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return why // the standard library
	}
	if test {
		return why
	}
	if slices.Contains(standardOnly, importer) {
		why = append(why, "this package needs no third party")
	}
	for prefix, only := range importers {
		if strings.HasPrefix(imported, prefix) && importer != only {
			why = append(why, "only "+only+" knows it")
		}
	}
	return why
}

// allowed decides by the row of mayImport that fits the importer best.
func allowed(importer, folder string) bool {
	row := importer
	for _, known := mayImport[row]; !known; _, known = mayImport[row] {
		if row == "." {
			return false // a package at the root, or in a folder that has no row
		}
		row = path.Dir(row)
	}
	if below(folder, row) && !otherRow(row, folder) {
		return true
	}
	ok := false
	for _, entry := range mayImport[row] {
		switch {
		case strings.HasPrefix(entry, "!") && below(folder, entry[1:]):
			return false
		case entry == "*" || entry == folder:
			ok = true
		}
	}
	return ok
}

func below(folder, root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") }

// otherRow says whether a folder below row has a row of its own.
func otherRow(row, folder string) bool {
	for ; folder != row; folder = path.Dir(folder) {
		if _, known := mayImport[folder]; known {
			return true
		}
	}
	return false
}

func root(t *testing.T) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		require.NotEqual(t, filepath.Dir(dir), dir, "no go.mod above")
		dir = filepath.Dir(dir)
	}
}

func TestImportsPointOneWay(t *testing.T) {
	found, err := violations(os.DirFS(root(t)))
	require.NoError(t, err)
	require.Empty(t, found)
}

// Each promise with an import that breaks it, and beside it one that does not.
func TestAPlantedImportIsFound(t *testing.T) {
	for _, row := range []struct {
		file, imported string
		why            string // "" where it is allowed
	}{
		{"cluster/a.go", module + "cluster/probe", "imports point the other way"},
		{"cluster/wire/a.go", module + "cluster", ""},
		{"cluster/wire/a.go", module + "wlm", "imports point the other way"},
		{"cluster/replica/a.go", module + "cluster/gossip", "imports point the other way"},
		{"applier/a.go", module + "cluster/probe", ""},
		{"applier/a.go", module + "cluster/replica", "imports point the other way"},
		{"wlm/a.go", module + "datanode", "imports point the other way"},
		{"coordinator/a_test.go", module + "datanode", ""}, // a test may meet its neighbour
		{"coordinator/a_test.go", module + "sim/netsim", "only sim and cmd know sim"},
		{"sim/world/a_test.go", module + "sim/netsim", ""},
		{"coordinator/a.go", module + "wlm", ""},
		{"coordinator/a.go", module + "applier", "imports point the other way"},
		{"coordinator/a.go", module + "datanode", "imports point the other way"},
		{"coordinator/a.go", module + "coordinator/rest", "imports point the other way"},
		{"coordinator/rest/a.go", module + "coordinator", ""},
		{"coordinator/rest/a.go", module + "sim/node", "imports point the other way"},
		{"sim/node/a.go", module + "coordinator/rest", ""},
		{"sim/node/a.go", module + "sim/bubble", "imports point the other way"},
		{"sim/world/a.go", module + "sim/node", ""},
		{"sim/world/a.go", module + "cmd/wlmsim", "imports point the other way"},
		{"cmd/wlmsim/a.go", module + "sim/world", ""},
		{"a.go", module + "cluster", "imports point the other way"},
		{"shelf/a.go", module + "cluster", "imports point the other way"},
		{"wlm/a.go", "golang.org/x/sync/semaphore", "this package needs no third party"},
		{"wlm/a_test.go", "golang.org/x/sync/semaphore", ""},
		{"coordinator/rest/a.go", "github.com/prometheus/client_golang/prometheus", ""},
		{"cluster/replica/a.go", "github.com/hashicorp/raft-boltdb/v2", ""},
		{"sim/node/a.go", "github.com/hashicorp/raft", "only cluster/replica knows it"},
		{"sim/netsim/a_test.go", "github.com/hashicorp/raft", ""},
		{"sim/world/a.go", "github.com/hashicorp/raft-boltdb/v2", "only cluster/replica knows it"},
		{"cluster/gossip/a.go", "github.com/hashicorp/memberlist", ""},
		{"cluster/replica/a.go", "github.com/hashicorp/memberlist", "only cluster/gossip knows it"},
		{"sim/history/a.go", "github.com/anishathalye/porcupine", "only sim/check knows it"},
		{"sim/bubble/a.go", "testing/synctest", ""},
		{"sim/world/a.go", "testing/synctest", "only tests and sim/bubble enter a bubble"},
		{"wlm/a_test.go", "testing/synctest", ""},
		{"wlm/a.go", "sync", ""},
		{"sim/compat/a.go", module + "cmd/wlmsim", ""}, // a module of its own
		{"wlm/testdata/a.go", module + "cmd/wlmsim", ""},
	} {
		t.Run(row.file+" "+row.imported, func(t *testing.T) {
			tree := fstest.MapFS{
				row.file:            {Data: []byte("package a\n\nimport _ " + strconv.Quote(row.imported) + "\n")},
				"sim/compat/go.mod": {Data: []byte("module compat\n")},
			}
			found, err := violations(tree)
			require.NoError(t, err)
			if row.why == "" {
				require.Empty(t, found)
				return
			}
			require.Equal(t, []string{row.file + " imports " + row.imported + ": " + row.why}, found)
		})
	}
	_, err := violations(fstest.MapFS{"wlm/a.go": {Data: []byte("no Go")}})
	require.Error(t, err, "what cannot be read is no pass")
}
