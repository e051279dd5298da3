//! The names that a certificate was made out to: its subject alternative names (RFC 5280, 4.2.1.6).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::der::{Elements, SEQUENCE, first};

/// DER's tags, as far as they stand on the way.
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const EXTENSIONS: u8 = 0xa3;
const EMAIL: u8 = 0x81;
const DNS: u8 = 0x82;
const URI: u8 = 0x86;
const ADDRESS: u8 = 0x87;
/// id-ce-subjectAltName, 2.5.29.17.
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

/// The names in a certificate, in DER: hosts, addresses, e-mail addresses and URIs, as they are written. None
/// where it is no certificate.
#[must_use]
pub fn names(certificate: &[u8]) -> Vec<String> {
    general_names(certificate).map(|der| Elements(der).filter_map(name).collect()).unwrap_or_default()
}

/// Whether a certificate, in DER, was made out to a host or an address: Go, browsers and all who keep to RFC 9525 look at
/// nothing else.
pub(super) fn names_a_host(certificate: &[u8]) -> bool {
    general_names(certificate).is_some_and(|der| Elements(der).any(|(tag, _)| matches!(tag, DNS | ADDRESS)))
}

/// What the extension holds that names are in.
fn general_names(certificate: &[u8]) -> Option<&[u8]> {
    let signed = first(first(certificate, SEQUENCE)?, SEQUENCE)?;
    let extensions = Elements(signed).find(|(tag, _)| *tag == EXTENSIONS)?.1;
    let mut extensions = Elements(first(extensions, SEQUENCE)?);
    let value = extensions.find_map(|(_, extension)| {
        let is_it = first(extension, OID)? == SUBJECT_ALT_NAME;
        is_it.then(|| Elements(extension).find(|(tag, _)| *tag == OCTETS))?.map(|(_, value)| value)
    })?;
    first(value, SEQUENCE)
}

fn name((tag, value): (u8, &[u8])) -> Option<String> {
    match tag {
        EMAIL | DNS | URI => String::from_utf8(value.to_vec()).ok(),
        ADDRESS => match value.len() {
            4 => Some(Ipv4Addr::from(*value.first_chunk()?).to_string()),
            16 => Some(Ipv6Addr::from(*value.first_chunk()?).to_string()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, SanType};

    fn certificate() -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example".to_owned(), "127.0.0.1".to_owned(), "fe80::1".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::Rfc822Name("me@a.example".try_into().unwrap()));
        params.subject_alt_names.push(SanType::URI("spiffe://a/b".try_into().unwrap()));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn every_kind_of_name_is_read() {
        assert_eq!(names(&certificate()), ["a.example", "127.0.0.1", "fe80::1", "me@a.example", "spiffe://a/b"]);
        let nameless = CertificateParams::new(Vec::new()).unwrap().self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert!(names(nameless.der()).is_empty());
        assert!(names_a_host(&certificate()) && !names_a_host(nameless.der()));
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names.push(SanType::Rfc822Name("me@a.example".try_into().unwrap()));
        assert!(!names_a_host(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der()), "no host by that");
    }

    #[test]
    fn what_is_cut_off_has_no_names() {
        let whole = certificate();
        for end in 0..whole.len() {
            assert!(names(&whole[..end]).is_empty(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn anything_may_be_called_a_certificate(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..400, byte: u8) {
            let _ = names(&bytes);
            let mut changed = certificate();
            let at = at % changed.len();
            changed[at] = byte;
            let _ = names(&changed);
        }
    }
}
