package live

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
)

// Security is what a node needs to listen off loopback. All of its zero value
// means: loopback only, in plain text.
type Security struct {
	GossipKey []byte // 16, 24 or 32 bytes: AES for all gossip
	Cert, Key string // PEM files for raft and HTTP; the certificate names the node's addresses
	CA        string // PEM file of the authority that signed every node's certificate
}

// HowToSecure tells how to make the key and the files.
const HowToSecure = `make a gossip key, an authority and a certificate that names the node's address, for example:
  openssl rand -hex 16                      # --gossip-key, the same on every node
  openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=wlmsim -keyout ca.key -out ca.pem
  openssl req -newkey rsa:2048 -nodes -subj /CN=node -addext subjectAltName=IP:192.0.2.7 -keyout node.key -out node.csr
  openssl x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy -days 365 -out node.pem
  wlmsim node ... --gossip-key KEY --tls-cert node.pem --tls-key node.key --tls-ca ca.pem`

// check refuses addresses off loopback without the means to protect them.
func (s Security) check(addresses ...string) error {
	var faults []error
	if (s.Cert == "") != (s.Key == "") || (s.Cert == "") != (s.CA == "") {
		faults = append(faults, fmt.Errorf("TLS needs a certificate, its key and an authority together, but these are %q, %q and %q", s.Cert, s.Key, s.CA))
	}
	switch len(s.GossipKey) {
	case 0, 16, 24, 32:
	default:
		faults = append(faults, fmt.Errorf("a gossip key has 16, 24 or 32 bytes but this one has %d", len(s.GossipKey)))
	}
	for _, address := range addresses {
		ap, err := netip.ParseAddrPort(address)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("address %q is not an IP address and a port", address))
		case ap.Addr().IsUnspecified():
			faults = append(faults, fmt.Errorf("address %q is none that others can reach: give the address of one interface", address))
		case !ap.Addr().IsLoopback() && (len(s.GossipKey) == 0 || s.Cert == ""):
			faults = append(faults, fmt.Errorf("address %q is off loopback, where a node does not start without a gossip key and TLS files; %s", address, HowToSecure))
			return errors.Join(faults...)
		}
	}
	return errors.Join(faults...)
}

// Client returns what a client of the nodes' HTTP APIs needs: nil for plain
// text.
func (s Security) Client() (*tls.Config, error) {
	if s.CA == "" {
		return nil, nil
	}
	authority, err := s.authority()
	return &tls.Config{RootCAs: authority, MinVersion: tls.VersionTLS12}, err
}

func (s Security) authority() (*x509.CertPool, error) {
	pem, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, fmt.Errorf("TLS authority: %w", err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("TLS authority %s: no PEM certificate stands in it", s.CA)
	}
	return authority, nil
}

// tlsConfigs returns the configurations of a node's raft links and of its HTTP
// server; nil for plain text.
func (s Security) tlsConfigs() (raft, http *tls.Config, err error) {
	if s.Cert == "" {
		return nil, nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS certificate %s with key %s: %w", s.Cert, s.Key, err)
	}
	authority, err := s.authority()
	if err != nil {
		return nil, nil, err
	}
	raft = &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: authority, ClientCAs: authority,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
	http = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return raft, http, nil
}

type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// dialer returns how to open streams, within TLS if there is a configuration.
func dialer(c *tls.Config) dialFunc {
	if c == nil {
		plain := &net.Dialer{}
		return func(ctx context.Context, address string) (net.Conn, error) {
			return plain.DialContext(ctx, "tcp", address)
		}
	}
	secure := &tls.Dialer{Config: c}
	return func(ctx context.Context, address string) (net.Conn, error) {
		return secure.DialContext(ctx, "tcp", address)
	}
}

func withinTLS(l net.Listener, c *tls.Config) net.Listener {
	if c == nil {
		return l
	}
	return tls.NewListener(l, c)
}
