//! TLS: what PEM files, versions and names of ciphers come to, for the side that answers and the one that asks.
//!
//! By rustls, whose ciphers are *ring*'s. TLS 1.2 and 1.3 are all that there is.

mod asking;
mod clients;
mod der;
mod names;
mod pem;
mod validity;

use std::fmt;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, Error, InconsistentKeys, NamedGroup, RootCertStore, ServerConfig, SupportedProtocolVersion};

pub use asking::{Trust, asking};
pub use clients::{ClientAuth, Clients};
pub use names::names;
use names::names_a_host;
pub use pem::not_pem;
use pem::{certificates, key};
use validity::{is_of_version_1, validity};

/// Curves by Go's names.
pub const CURVES: [(&str, NamedGroup); 3] =
    [("X25519", NamedGroup::X25519), ("CurveP256", NamedGroup::secp256r1), ("CurveP384", NamedGroup::secp384r1)];

/// Cipher suites by Go's names. Those of TLS 1.3, at the end, are always there.
pub const CIPHER_SUITES: [(&str, CipherSuite); 11] = [
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 1.2.
    Tls12,
    /// 1.3.
    Tls13,
}

/// How to answer.
#[derive(Debug)]
pub struct Settings {
    /// Our certificate, and those between it and its authority, in PEM.
    pub certificate: String,
    /// Its key, in PEM.
    pub key: String,
    /// What is asked of clients.
    pub client_auth: ClientAuth,
    /// Whose certificates are taken, in PEM.
    pub client_authority: Option<String>,
    /// Of these names one has to be in a client's certificate.
    pub client_names: Vec<String>,
    /// A client without the certificate that it needs is let in, since some paths are for everybody.
    pub exempts: bool,
    /// The oldest and the newest version.
    pub versions: (Version, Version),
    /// Cipher suites of TLS 1.2; all that there are where it is empty.
    pub suites: Vec<CipherSuite>,
    /// Curves; all that there are where it is empty.
    pub curves: Vec<NamedGroup>,
    /// The order of `suites` counts, and not the client's.
    pub prefer_own_order: bool,
}

/// What of [`Settings`] is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The certificate.
    Certificate,
    /// The key.
    Key,
    /// Whose certificates are taken.
    ClientAuthority,
    /// Versions, suites and curves leave nothing.
    Versions,
}

/// What `openssl x509 -req` makes if it is given no extensions.
const VERSION_1: &str = "holds a certificate of X.509 version 1, which has no names that clients could check; sign it with extensions \
    (openssl x509 -req -extfile FILE, with subjectAltName=DNS:HOST in FILE)";

/// *ring* signs with no others.
const KEYS: &str = "holds a key of a kind that is not used here: take RSA of 2048 to 4096 bits, P-256 or P-384 by its name, or Ed25519";

/// Ready to answer.
#[derive(Clone)]
pub struct Answering {
    /// For handshakes.
    pub config: Arc<ServerConfig>,
    /// Who looks at clients' certificates, if anybody does.
    pub clients: Option<Arc<Clients>>,
    /// Until when what was given is of use.
    pub expiry: Expiry,
}

/// From when and until when certificates are valid, in seconds since the Unix epoch; and whether ours is of use then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// Our own; without those between it and its authority.
    pub server: Option<i64>,
    /// From when our own is valid.
    pub server_from: Option<i64>,
    /// Our own was made out to no host and no address: who checks that refuses it.
    pub nameless: bool,
    /// The last of those whose certificates are taken from clients: one that takes over from another stands beside it.
    pub client_authority: Option<i64>,
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").field("clients", &self.clients).field("expiry", &self.expiry).finish_non_exhaustive()
    }
}

/// Makes ready to answer.
///
/// # Errors
///
/// What is wrong, and why, as the end of a sentence that begins with it.
pub fn answering(settings: Settings) -> Result<Answering, (Part, String)> {
    let provider = Arc::new(provider(&settings));
    let versions: &[&'static SupportedProtocolVersion] = match settings.versions {
        (Version::Tls12, Version::Tls12) => &[&TLS12],
        (Version::Tls12, Version::Tls13) => &[&TLS12, &TLS13],
        (Version::Tls13, _) => &[&TLS13],
    };
    let chain = certificates(&settings.certificate).map_err(|why| (Part::Certificate, why))?;
    let key = key(&settings.key).map_err(|why| (Part::Key, why))?;
    let ours = Arc::clone(&provider);
    ours.key_provider.load_private_key(key.clone_key()).map_err(|_| (Part::Key, KEYS.to_owned()))?;
    let clients = clients(&settings, &provider).map_err(|why| (Part::ClientAuthority, why))?;
    let authorities = settings.client_authority.as_deref().and_then(|pem| certificates(pem).ok()).unwrap_or_default();
    let (server_from, server) = chain.first().and_then(|certificate| validity(certificate)).unzip();
    let expiry = Expiry {
        server,
        server_from,
        nameless: chain.first().is_some_and(|certificate| !names_a_host(certificate)),
        client_authority: authorities.iter().filter_map(|certificate| validity(certificate)).map(|(_, last)| last).max(),
    };
    let is_of_version_1 = chain.first().is_some_and(|certificate| is_of_version_1(certificate));
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions);
    let builder = builder.map_err(|error| (Part::Versions, error.to_string()))?;
    let builder = match &clients {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(Arc::clone(clients) as _),
    };
    let fits_a_later_one = fits_a_later_one(&chain, &key, &ours);
    let mut config = builder.with_single_cert(chain, key).map_err(|error| {
        if error == Error::InconsistentKeys(InconsistentKeys::KeyMismatch) && fits_a_later_one {
            (Part::Certificate, "begins with a certificate that the key does not belong to: the server's own has to come first".to_owned())
        } else if error == Error::InconsistentKeys(InconsistentKeys::KeyMismatch) {
            (Part::Key, "is not the key of the certificate".to_owned())
        } else if is_of_version_1 {
            (Part::Certificate, VERSION_1.to_owned())
        } else if matches!(error, Error::InvalidCertificate(_)) {
            (Part::Certificate, "holds something that is no certificate".to_owned())
        } else {
            (Part::Key, format!("cannot be used: {error}"))
        }
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ignore_client_order = settings.prefer_own_order;
    Ok(Answering { config: Arc::new(config), clients, expiry })
}

/// Whether a key is that of a certificate after the first.
fn fits_a_later_one(chain: &[CertificateDer<'static>], key: &PrivateKeyDer<'static>, provider: &CryptoProvider) -> bool {
    let later = chain.iter().skip(1);
    later.into_iter().any(|certificate| CertifiedKey::from_der(vec![certificate.clone()], key.clone_key(), provider).is_ok())
}

/// What there is of ciphers, or what of it is wanted.
fn provider(settings: &Settings) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if !settings.suites.is_empty() {
        let all = std::mem::take(&mut provider.cipher_suites);
        let (newer, older): (Vec<_>, Vec<_>) = all.into_iter().partition(|suite| suite.tls13().is_some());
        provider.cipher_suites = newer;
        provider.cipher_suites.extend(settings.suites.iter().filter_map(|wanted| older.iter().find(|suite| suite.suite() == *wanted)));
    }
    if !settings.curves.is_empty() {
        let all = std::mem::take(&mut provider.kx_groups);
        provider.kx_groups = settings.curves.iter().filter_map(|wanted| all.iter().find(|group| group.name() == *wanted).copied()).collect();
    }
    provider
}

fn clients(settings: &Settings, provider: &Arc<CryptoProvider>) -> Result<Option<Arc<Clients>>, String> {
    if settings.client_auth == ClientAuth::NoClientCert {
        return Ok(None);
    }
    let authority = settings.client_authority.as_deref().map_or(Ok(RootCertStore::empty()), authority)?;
    let clients = Clients::new(settings.client_auth, authority, settings.client_names.clone(), !settings.exempts, provider)?;
    Ok(Some(Arc::new(clients)))
}

/// Those whose certificates are taken.
fn authority(pem: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|_| "holds something that is no certificate".to_owned())?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests;
