//! The side that asks: for health checks of our own kind.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use super::authority;
use super::pem::certificates;
use super::validity::validity;

/// Who is believed to be who was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust<'p> {
    /// Who has a certificate for that name of one of these, in PEM; or one of these.
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
    let vouched = match trust {
        Trust::Authority(pem) => Some(Vouched::new(pem)?),
        Trust::Anybody => None,
    };
    Ok(Arc::new(builder.dangerous().with_custom_certificate_verifier(Arc::new(Checker { algorithms, vouched })).with_no_client_auth()))
}

/// Takes who is vouched for, or where nobody has to be any certificate; of who has its key.
#[derive(Debug)]
struct Checker {
    algorithms: WebPkiSupportedAlgorithms,
    vouched: Option<Vouched>,
}

/// Takes who is vouched for by one of these certificates, and who has one of them: `openssl req -x509` makes one that is an
/// authority and a server at once. Curl and Go take it too; webpki refuses it.
#[derive(Debug)]
struct Vouched {
    by: Arc<WebPkiServerVerifier>,
    known: Vec<CertificateDer<'static>>,
}

impl Vouched {
    fn new(pem: &str) -> Result<Vouched, String> {
        let by = WebPkiServerVerifier::builder_with_provider(Arc::new(authority(pem)?), Arc::new(ring::default_provider()));
        Ok(Vouched { by: by.build().map_err(|error| format!("cannot be used: {error}"))?, known: certificates(pem)? })
    }
}

/// What webpki would have looked at beside who vouches for it: when it is valid, and for which names.
fn vouches_for_itself(own: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> Result<ServerCertVerified, Error> {
    let (first, last) = validity(own).ok_or(CertificateError::BadEncoding)?;
    match i64::try_from(now.as_secs()).unwrap_or(i64::MAX) {
        now if now < first => return Err(CertificateError::NotValidYet.into()),
        now if now > last => return Err(CertificateError::Expired.into()),
        _ => {}
    }
    verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
    Ok(ServerCertVerified::assertion())
}

impl ServerCertVerifier for Checker {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Vouched { by, known }) = &self.vouched else { return Ok(ServerCertVerified::assertion()) };
        match by.verify_server_cert(own, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(CertificateError::Other(_))) if known.contains(own) => vouches_for_itself(own, name, now),
            verified => verified,
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
