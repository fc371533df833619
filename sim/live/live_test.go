package live_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/live"
)

// A probe of memberlist's that waits for a member which was closed first ends up
// to gossip.Timings.Linger after Close, longer than goleak looks.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// within returns a context for one step of a test; it only ends a test that
// hangs.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func createGroup(id, name string) *cluster.CreateGroup {
	return &cluster.CreateGroup{Group: cluster.Group{
		ID: id, Name: name, ResiliencyMode: cluster.Enforced, ResourceLimits: map[string]float64{"cpu": 0.1},
	}}
}

// unknown says whether the leader was lost under way, as a starved machine may
// make it: only then a test goes on as if the change had been made, or asks
// again.
func unknown(err error) bool { return cluster.KindOf(err) == cluster.OutcomeUnknown }

// put makes a group. A change whose outcome is unknown is made again, and may
// then be there.
func put(t *testing.T, m proposer, id, name string) {
	t.Helper()
	ctx := within(t)
	err := m.Propose(ctx, createGroup(id, name))
	for unknown(err) && ctx.Err() == nil {
		if err = m.Propose(ctx, createGroup(id, name)); cluster.KindOf(err) == cluster.IllegalArgument {
			return
		}
	}
	require.NoError(t, err)
}

type proposer interface {
	Propose(context.Context, cluster.Command) error
}

// get reads a path of a node.
func get(t *testing.T, client *http.Client, url string) (int, string) {
	response, err := client.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// newClient returns a client that leaves no connection behind.
func newClient(t *testing.T, c *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: c}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A folder that a running node has is not taken, and the error says which it is,
// who has it, and what to do.
func TestAFolderInUseSaysByWhom(t *testing.T) {
	o := live.NodeOptions{Name: "m1", DataDir: t.TempDir()}
	n, err := live.StartNode(o)
	require.NoError(t, err)
	defer n.Close()
	_, err = live.StartNode(o)
	require.ErrorContains(t, err, fmt.Sprintf("data folder %s is in use, most likely by process %d, which used it last: something listens at %s, the address of its node m1; stop that, or choose another folder",
		o.DataDir, os.Getpid(), n.Addresses.Raft))
	var wrong live.OptionsError
	require.False(t, errors.As(err, &wrong), "it could not run")

	o.Raft, o.Gossip = "127.0.0.2:0", "127.0.0.2:0" // elsewhere the files are still taken
	_, err = live.StartNode(o)
	require.ErrorContains(t, err, filepath.Join(o.DataDir, "raft", "raft.db")+" is in use by another process")
}

// A name that no node can have is a mistake of the caller, told before anything
// is made.
func TestABadNameIsAMistakeOfTheCaller(t *testing.T) {
	for _, name := range []string{"", "x y", "a/b", strings.Repeat("n", 129)} {
		o := live.NodeOptions{Name: name, DataDir: filepath.Join(t.TempDir(), "data")}
		_, err := live.StartNode(o)
		var wrong live.OptionsError
		require.ErrorAs(t, err, &wrong, "%q", name)
		require.NoDirExists(t, o.DataDir)
	}
}

// Promise 2, and what --data-dir is for: a cluster that starts again on its
// folder has its state, its ids and its addresses. They are on a loopback address
// of this test, where nobody takes the ports in between.
func TestAClusterThatStartsAgainHasItsStateAndItsAddresses(t *testing.T) {
	dir, o := t.TempDir(), options(t)
	o.Raft, o.Gossip = "127.0.0.3:0", "127.0.0.3:0"
	first := upWith(t, dir, o)
	put(t, first.Members[1], "kept-group-00000000000", "kept")
	var before []live.Addresses
	for _, m := range first.Members {
		before = append(before, m.Where())
	}
	require.NoError(t, first.Close())

	again := upWith(t, dir, o)
	defer func() { require.NoError(t, again.Close()) }()
	client := newClient(t, nil)
	for i, m := range again.Members {
		require.Equal(t, before[i].Raft, m.Where().Raft)
		require.Equal(t, before[i].Gossip, m.Where().Gossip)
		status, text := get(t, client, "http://"+m.Where().HTTP+"/_wlm/workload_group/kept?local=true")
		require.Equal(t, http.StatusOK, status, text)
		require.Contains(t, text, "kept-group-00000000000")
	}
	ctx := within(t)
	refused := again.Members[2].Propose(ctx, createGroup("other-group-0000000000", "kept"))
	for unknown(refused) && ctx.Err() == nil {
		refused = again.Members[2].Propose(ctx, createGroup("other-group-0000000000", "kept"))
	}
	require.Equal(t, cluster.IllegalArgument, cluster.KindOf(refused))
}

// A node enters a running cluster through one member, and leaves it for good.
func TestANodeEntersARunningClusterAndLeavesIt(t *testing.T) {
	dir := t.TempDir()
	c := up(t, filepath.Join(dir, "cluster"))
	defer func() { require.NoError(t, c.Close()) }()
	o := options(t)
	o.Name, o.DataDir, o.Join = "m4", filepath.Join(dir, "m4"), []string{c.Members[2].Where().Gossip}
	n, err := live.StartNode(o)
	require.NoError(t, err)
	require.NoError(t, n.Ready(within(t)))
	require.NotNil(t, n.State().Index("logs"))
	if err := n.Leave(within(t)); !unknown(err) {
		require.NoError(t, err)
	}
	require.NoError(t, n.Close())
	client := newClient(t, nil)
	status, text := get(t, client, "http://"+c.Members[0].Where().HTTP+"/_cat/nodes")
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, text, "m4")
	put(t, c.Members[0], "after-group-0000000000", "after")
}

// A second live node of a name is told so, and the first is unharmed.
func TestASecondNodeOfANameIsToldWhyItCannotGoOn(t *testing.T) {
	dir := t.TempDir()
	c := up(t, filepath.Join(dir, "cluster"))
	defer func() { require.NoError(t, c.Close()) }()
	o := options(t)
	o.Name, o.DataDir, o.Join = "m2", filepath.Join(dir, "other"), []string{c.Members[0].Where().Gossip}
	n, err := live.StartNode(o)
	require.NoError(t, err)
	select {
	case err := <-n.Failed():
		require.ErrorContains(t, err, "name is taken")
	case <-within(t).Done():
		require.Fail(t, "the second m2 was not told")
	}
	require.NoError(t, n.Close())
	put(t, c.Members[1], "still-group-0000000000", "still")
}

// Without a folder a temporary one is used and removed.
func TestATemporaryFolderIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c, err := live.Up(within(t), live.Options{Nodes: 1, HTTP: "127.0.0.1:0", Node: options(t)})
	require.NoError(t, err)
	made, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "wlmsim-up-*"))
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.NoError(t, c.Close())
	require.NoDirExists(t, made[0])
}

// A folder belongs to one node.
func TestAFolderOfAnotherNodeIsRefused(t *testing.T) {
	o := options(t)
	o.Name, o.DataDir = "m1", t.TempDir()
	n, err := live.StartNode(o)
	require.NoError(t, err)
	require.NoError(t, n.Close())
	o.Name = "m2"
	_, err = live.StartNode(o)
	require.ErrorContains(t, err, `belongs to node "m1"`)
}

// A data node alone is no cluster: it has no vote.
func TestANodeThatIsNoManagerBeginsNoCluster(t *testing.T) {
	o := options(t)
	o.Name, o.DataDir, o.Roles = "d1", t.TempDir(), []cluster.Role{cluster.Data}
	_, err := live.StartNode(o)
	require.ErrorContains(t, err, `node "d1" is no manager and cannot begin a cluster`)
	require.ErrorAs(t, err, new(live.OptionsError))
}

// Promise 1.
func TestOffLoopbackNothingStartsWithoutKeyAndTLS(t *testing.T) {
	certificates := writeCertificates(t)
	key := bytes.Repeat([]byte{1}, 16)
	for _, c := range []struct {
		name   string
		change func(*live.NodeOptions)
		want   string
	}{
		{"HTTP in plain text", func(o *live.NodeOptions) { o.HTTP = "192.0.2.1:9200" }, "off loopback"},
		{"raft in plain text", func(o *live.NodeOptions) { o.Raft = "192.0.2.1:9300" }, "off loopback"},
		{"gossip in plain text", func(o *live.NodeOptions) { o.Gossip = "192.0.2.1:9400" }, "openssl rand"},
		{"a member elsewhere", func(o *live.NodeOptions) { o.Join = []string{"192.0.2.1:9400"} }, "off loopback"},
		{"IPv6", func(o *live.NodeOptions) { o.HTTP = "[2001:db8::1]:9200" }, "off loopback"},
		{"a key alone", func(o *live.NodeOptions) { o.HTTP, o.Security.GossipKey = "192.0.2.1:9200", key }, "off loopback"},
		{"TLS alone", func(o *live.NodeOptions) {
			o.HTTP, o.Security = "192.0.2.1:9200", certificates
		}, "off loopback"},
		{"half of TLS", func(o *live.NodeOptions) { o.Security.Cert = "x" }, "needs a certificate, its key and an authority together"},
		{"a short key", func(o *live.NodeOptions) { o.Security.GossipKey = []byte("short") }, "16, 24 or 32 bytes but this one has 5"},
		{"every interface", func(o *live.NodeOptions) { o.HTTP = "0.0.0.0:9200" }, "give the address of one interface"},
		{"a name", func(o *live.NodeOptions) { o.HTTP = "localhost:9200" }, "not an IP address and a port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t)
			o.Name, o.DataDir = "m1", filepath.Join(t.TempDir(), "data")
			c.change(&o)
			_, err := live.StartNode(o)
			require.ErrorContains(t, err, c.want)
			require.ErrorAs(t, err, new(live.OptionsError))
			require.NoDirExists(t, o.DataDir, "nothing was done")
		})
	}
}

// With a key and TLS a cluster works, and a client without the authority, or
// without TLS, gets nowhere.
func TestAClusterWithKeyAndTLS(t *testing.T) {
	o := options(t)
	o.Security = writeCertificates(t)
	o.Security.GossipKey = bytes.Repeat([]byte{7}, 32)
	c, err := live.Up(within(t), live.Options{Nodes: 2, HTTP: "127.0.0.1:0", DataDir: t.TempDir(), Node: o})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	makeIndex(t, c, 4)

	authority := x509.NewCertPool()
	text, err := os.ReadFile(o.Security.CA)
	require.NoError(t, err)
	require.True(t, authority.AppendCertsFromPEM(text))
	status, body := get(t, newClient(t, &tls.Config{RootCAs: authority}), "https://"+c.Members[1].Where().HTTP+"/logs/_search")
	require.Equal(t, http.StatusOK, status, body)
	require.True(t, strings.Contains(body, `"successful":4`), body)

	_, err = newClient(t, nil).Get("https://" + c.Members[0].Where().HTTP + "/")
	require.ErrorContains(t, err, "unknown authority")
	conn, err := tls.Dial("tcp", c.Members[0].Where().Raft, &tls.Config{RootCAs: authority})
	if err == nil { // TLS 1.3 tells a client of its missing certificate at the first read
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	require.ErrorContains(t, err, "certificate required")
}

// writeCertificates makes an authority and a certificate for 127.0.0.1.
func writeCertificates(t *testing.T) live.Security {
	dir := t.TempDir()
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "wlmsim test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	nodeKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	node := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	write := func(name, kind string, der []byte, err error) string {
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	s := live.Security{CA: write("ca.pem", "CERTIFICATE", der, err)}
	der, err = x509.CreateCertificate(rand.Reader, node, authority, &nodeKey.PublicKey, authorityKey)
	s.Cert = write("node.pem", "CERTIFICATE", der, err)
	der, err = x509.MarshalECPrivateKey(nodeKey)
	s.Key = write("node.key", "EC PRIVATE KEY", der, err)
	return s
}
