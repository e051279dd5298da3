//! Certificates and keys in PEM, and what is said of files that hold them in another way.

use rustls::pki_types::pem::{Error, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::der::{Elements, SEQUENCE, first};

/// DER's tag of a number.
const INTEGER: u8 = 0x02;
/// What PKCS#12 begins with (RFC 7292, 4): its version.
const PKCS_12: &[u8] = &[3];
/// An element whose end is marked and not counted: some write PKCS#12 so, and nothing else.
const ENDLESS: &[u8] = &[SEQUENCE, 0x80];

/// All certificates of a PEM file; one at the least.
pub(super) fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err("holds no certificate in PEM (-----BEGIN CERTIFICATE-----)".to_owned()),
        Ok(certificates) => Ok(certificates),
        Err(_) => Err("is no PEM: a section of it is cut off or garbled".to_owned()),
    }
}

/// The key of a PEM file.
pub(super) fn key(pem: &str) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| match (matches!(error, Error::NoItemsFound), pem.contains("ENCRYPTED")) {
        (_, true) => "is encrypted; a key here has no passphrase (openssl pkey -in FILE -out NEW takes it away)".to_owned(),
        (true, false) => "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)".to_owned(),
        (false, false) => "is no PEM: a section of it is cut off or garbled".to_owned(),
    })
}

/// What bytes are that should have been PEM, and what makes that of them. `None` where they are none of what `openssl`
/// and others write besides.
#[must_use]
pub fn not_pem(bytes: &[u8]) -> Option<&'static str> {
    const PKCS_12_TOLD: &str = "it is PKCS#12, and not PEM; openssl pkcs12 -in FILE -nodes -out NEW makes that of it";
    if bytes.starts_with(ENDLESS) {
        return Some(PKCS_12_TOLD);
    }
    match Elements(first(bytes, SEQUENCE)?).next()? {
        (INTEGER, PKCS_12) => Some(PKCS_12_TOLD),
        (INTEGER, _) => Some("it is DER, and not PEM; openssl pkey -inform DER -in FILE -out NEW makes that of it"),
        (SEQUENCE, _) => Some("it is DER, and not PEM; openssl x509 -inform DER -in FILE -out NEW makes that of it"),
        _ => None,
    }
}
