//! The side that asks: for health checks of our own kind.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use super::authority;

/// Who is believed to be who was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust<'p> {
    /// Who has a certificate for that name of one of these, in PEM.
    Authority(&'p str),
    /// Whoever answers.
    Anybody,
}

/// Ready to ask.
///
/// # Errors
///
/// What is wrong with the authority, as the end of a sentence that begins with it.
pub fn asking(trust: Trust<'_>) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let config = match trust {
        Trust::Authority(pem) => builder.with_root_certificates(authority(pem)?).with_no_client_auth(),
        Trust::Anybody => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(algorithms))).with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// Takes any certificate of who has its key.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, own, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, own, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
