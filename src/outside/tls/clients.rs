//! Certificates of clients: whose are asked for, and whose are taken.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use super::names::names;

/// What is asked of clients; the names are Go's, as Prometheus' exporters have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// Nothing.
    #[default]
    NoClientCert,
    /// A certificate, which nobody looks at.
    RequestClientCert,
    /// Some certificate.
    RequireAnyClientCert,
    /// A certificate of the authority's, or none.
    VerifyClientCertIfGiven,
    /// A certificate of the authority's.
    RequireAndVerifyClientCert,
}

impl ClientAuth {
    /// All of them, with their names.
    pub const ALL: [(&'static str, ClientAuth); 5] = [
        ("NoClientCert", ClientAuth::NoClientCert),
        ("RequestClientCert", ClientAuth::RequestClientCert),
        ("RequireAnyClientCert", ClientAuth::RequireAnyClientCert),
        ("VerifyClientCertIfGiven", ClientAuth::VerifyClientCertIfGiven),
        ("RequireAndVerifyClientCert", ClientAuth::RequireAndVerifyClientCert),
    ];

    /// Whether nobody comes in without a certificate.
    #[must_use]
    pub const fn requires(self) -> bool {
        matches!(self, ClientAuth::RequireAnyClientCert | ClientAuth::RequireAndVerifyClientCert)
    }

    /// Whether a certificate has to be of the authority's.
    #[must_use]
    pub const fn verifies(self) -> bool {
        matches!(self, ClientAuth::VerifyClientCertIfGiven | ClientAuth::RequireAndVerifyClientCert)
    }
}

/// Who looks at clients' certificates.
#[derive(Debug)]
pub struct Clients {
    auth: ClientAuth,
    /// A handshake without one fails; otherwise who answers requests says what is refused.
    mandatory: bool,
    /// Who knows the authority; none where nobody looks.
    trusted: Option<Arc<dyn ClientCertVerifier>>,
    /// Of these names one has to be in the certificate; any will do where there are none.
    allowed: Vec<String>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Clients {
    /// What `auth` says, with an authority where that is needed.
    ///
    /// # Errors
    ///
    /// What is wrong with the authority.
    pub(super) fn new(
        auth: ClientAuth,
        authority: RootCertStore,
        allowed: Vec<String>,
        mandatory: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Clients, String> {
        let build = |roots| WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).allow_unauthenticated().build();
        let trusted = auth.verifies().then(|| build(authority)).transpose().map_err(|error| error.to_string())?;
        Ok(Clients { auth, mandatory, trusted, allowed, algorithms: provider.signature_verification_algorithms })
    }

    /// What is asked of them.
    #[must_use]
    pub const fn auth(&self) -> ClientAuth {
        self.auth
    }

    /// Whether these certificates, of a client that has shown that the first one is its own, are taken now.
    #[must_use]
    pub fn takes(&self, certificates: &[CertificateDer<'_>], now: UnixTime) -> bool {
        certificates.split_first().is_some_and(|(own, others)| self.verify_client_cert(own, others, now).is_ok())
    }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory && self.auth.requires()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.trusted.as_ref().map_or(&[], |trusted| trusted.root_hint_subjects())
    }

    fn verify_client_cert(&self, own: &CertificateDer<'_>, others: &[CertificateDer<'_>], now: UnixTime) -> Result<ClientCertVerified, Error> {
        if let Some(trusted) = &self.trusted {
            trusted.verify_client_cert(own, others, now)?;
        }
        let named = || names(own).iter().any(|name| self.allowed.contains(name));
        if self.allowed.is_empty() || named() {
            Ok(ClientCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, own, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, own, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
