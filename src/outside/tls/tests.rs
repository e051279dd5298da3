use rcgen::{CertificateParams, KeyPair};

use super::*;

fn pair() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn settings((certificate, key): (String, String)) -> Settings {
    Settings {
        certificate,
        key,
        client_auth: ClientAuth::NoClientCert,
        client_authority: None,
        client_names: Vec::new(),
        exempts: false,
        versions: (Version::Tls12, Version::Tls13),
        suites: Vec::new(),
        curves: Vec::new(),
        prefer_own_order: true,
    }
}

#[test]
fn what_is_wrong_is_named() {
    let wrong = |change: fn(&mut Settings)| {
        let mut settings = settings(pair());
        change(&mut settings);
        answering(settings).map(drop).unwrap_err()
    };
    let cut = |pem: &str| pem.lines().take(3).collect::<Vec<_>>().join("\n");
    let told = |part, why: &str| (part, why.to_owned());
    assert_eq!(wrong(|s| s.certificate.clear()), told(Part::Certificate, "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)"));
    assert_eq!(wrong(|s| s.certificate = s.key.clone()), told(Part::Certificate, "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)"));
    let mut half = settings(pair());
    half.certificate = cut(&half.certificate);
    assert_eq!(answering(half).unwrap_err(), told(Part::Certificate, "is no PEM: a section of it is cut off or garbled"));
    assert_eq!(
        wrong(|s| s.certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()),
        told(Part::Certificate, "holds something that is no certificate")
    );
    assert_eq!(wrong(|s| s.key = s.certificate.clone()), told(Part::Key, "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)"));
    assert_eq!(
        wrong(|s| s.key = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n".to_owned()),
        told(Part::Key, "is encrypted; a key here has no passphrase")
    );
    assert_eq!(wrong(|s| s.key = pair().1), told(Part::Key, "is not the key of the certificate"));
    assert_eq!(
        wrong(|s| (s.client_auth, s.client_authority) = (ClientAuth::RequireAndVerifyClientCert, Some("x".to_owned()))),
        told(Part::ClientAuthority, "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    );
}

#[test]
fn every_name_of_a_cipher_and_a_curve_is_one_that_there_is() {
    for (name, suite) in CIPHER_SUITES {
        let settings = Settings { suites: vec![suite], ..settings(pair()) };
        let there: Vec<_> = provider(&settings).cipher_suites.iter().map(rustls::SupportedCipherSuite::suite).collect();
        let older = usize::from(!name.starts_with("TLS_AES_") && !name.starts_with("TLS_CHACHA20_"));
        assert!(there.contains(&suite) && there.len() == 3 + older, "{name}: {there:?}");
        assert!(answering(settings).is_ok());
    }
    for (name, curve) in CURVES {
        let settings = Settings { curves: vec![curve], ..settings(pair()) };
        assert_eq!(provider(&settings).kx_groups.iter().map(|group| group.name()).collect::<Vec<_>>(), [curve], "{name}");
        assert!(answering(settings).is_ok());
    }
}
