package overlay_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/exact/overlay"
)

// goroot is where the toolchain is that runs the test.
func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// replaced reads an overlay file.
func replaced(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct{ Replace map[string]string }
	require.NoError(t, json.Unmarshal(text, &file))
	return file.Replace
}

// Promises 1 and 2, with the installed toolchain.
func TestTheInstalledToolchainIsKnown(t *testing.T) {
	root := goroot(t)
	path, err := overlay.Write(root, t.TempDir())
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(path))
	replace := replaced(t, path)
	require.Contains(t, replace, filepath.Join(root, "src", "runtime", "proc.go"))
	for from, to := range replace {
		edited, err := os.ReadFile(to)
		require.NoError(t, err)
		require.Contains(t, string(edited), "wlmsim")
		if original, err := os.ReadFile(from); err == nil {
			require.NotContains(t, string(original), "wlmsim", "%s is as it was", from)
		}
	}
}

func TestASecondWriteTouchesNothing(t *testing.T) {
	root, dir := goroot(t), t.TempDir()
	path, err := overlay.Write(root, dir)
	require.NoError(t, err)
	before, err := os.Stat(path)
	require.NoError(t, err)
	again, err := overlay.Write(root, dir)
	require.NoError(t, err)
	require.Equal(t, path, again)
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
}

// changed returns a toolchain that holds what the overlay edits, with one text
// in the place of another in one file.
func changed(t *testing.T, file, from, to string) string {
	t.Helper()
	root, other := goroot(t), t.TempDir()
	path, err := overlay.Write(root, t.TempDir())
	require.NoError(t, err)
	for original := range replaced(t, path) {
		name, err := filepath.Rel(root, original)
		require.NoError(t, err)
		text, err := os.ReadFile(original)
		if os.IsNotExist(err) { // an added file
			continue
		}
		require.NoError(t, err)
		if name == filepath.Join("src", filepath.FromSlash(file)) {
			require.Contains(t, string(text), from)
			text = []byte(strings.ReplaceAll(string(text), from, to))
		}
		require.NoError(t, os.MkdirAll(filepath.Join(other, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(other, name), text, 0o600))
	}
	return other
}

func TestAnUnchangedCopyIsKnown(t *testing.T) {
	_, err := overlay.Write(changed(t, "runtime/time.go", "cheaprand", "cheaprand"), t.TempDir())
	require.NoError(t, err)
}

// Promise 1, with toolchains in which one text is another, or stands there
// once more.
func TestAnotherToolchainIsRefusedWithFileAndText(t *testing.T) {
	for _, c := range []struct{ name, file, from, to, text string }{
		{"gone", "runtime/time.go", "t.rand = cheaprand()", "t.rand = draw()", "t.rand = cheaprand()"},
		{"elsewhere", "context/context.go", "range c.children", "range c.kids", "for child := range c.children {"},
		{"twice", "runtime/select.go", "package runtime", "package runtime // cheaprandn(uint32(norder", "cheaprandn(uint32(norder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, dir := changed(t, c.file, c.from, c.to), filepath.Join(t.TempDir(), "overlay")
			_, err := overlay.Write(root, dir)
			var missing *overlay.MissingError
			require.ErrorAs(t, err, &missing)
			require.Equal(t, filepath.Join(root, "src", filepath.FromSlash(c.file)), missing.File)
			require.Equal(t, c.text, missing.Text)
			require.ErrorContains(t, err, missing.File)
			require.ErrorContains(t, err, c.text)
			_, err = os.Stat(dir)
			require.ErrorIs(t, err, fs.ErrNotExist, "nothing is written")
		})
	}
}

func TestEveryFaultIsNamedAtOnce(t *testing.T) {
	root := changed(t, "runtime/rand.go", "chacha8", "chacha9")
	require.NoError(t, os.Remove(filepath.Join(root, "src", "runtime", "sema.go")))
	_, err := overlay.Write(root, t.TempDir())
	require.ErrorContains(t, err, "rand.go")
	require.ErrorContains(t, err, "sema.go")
}
