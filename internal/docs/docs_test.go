// Package docs holds the pages under docs to what the tree has.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// named finds the tests and benchmarks that a page names.
var named = regexp.MustCompile(`\b(?:Test|Benchmark)[A-Z]\w*`)

// shipped finds the scenarios that a page names.
var shipped = regexp.MustCompile(`\b(?:scenarios|sim)/[\w/.-]*\.yaml\b`)

// missing returns the tests that a page names and that no package has.
func missing(page string, tests map[string]bool) []string {
	var none []string
	for _, name := range named.FindAllString(page, -1) {
		if !tests[name] && !slices.Contains(none, name) {
			none = append(none, name)
		}
	}
	return none
}

// absent returns the scenarios that a page names and that are not below root.
func absent(page, root string) []string {
	var none []string
	for _, path := range shipped.FindAllString(page, -1) {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil && !slices.Contains(none, path) {
			none = append(none, path)
		}
	}
	return none
}

// testsBelow returns the names of all tests in the tree.
func testsBelow(t *testing.T, root string) map[string]bool {
	tests := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
		return nil
	}))
	return tests
}

func TestThePagesNameTestsAndScenariosThatAreThere(t *testing.T) {
	tests := testsBelow(t, "../..")
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Empty(t, missing(string(text), tests), page)
		require.Empty(t, absent(string(text), "../.."), page)
	}
}

func TestAPageThatNamesAnotherTestIsCaught(t *testing.T) {
	tests := testsBelow(t, ".")
	require.Equal(t, []string{"TestThatNobodyWrote", "BenchmarkOfNothing"},
		missing("`x` TestThePagesNameTestsAndScenariosThatAreThere, TestThatNobodyWrote; TestThatNobodyWrote, BenchmarkOfNothing", tests))
}

func TestAPageThatNamesAnotherScenarioIsCaught(t *testing.T) {
	require.Equal(t, []string{"scenarios/lag/none.yaml", "sim/shipped/testdata/none.yaml"},
		absent("`scenarios/lag/none.yaml`, `sim/shipped/testdata/none.yaml`, `scenarios/lag/a-stale-node-keeps-the-old-limit.yaml`; `scenarios/lag/none.yaml`", "../.."))
}
