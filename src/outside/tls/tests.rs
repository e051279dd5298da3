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

/// What openssl 3.0 makes of `x509 -req -signkey`, valid for a hundred years; and its key.
const OF_VERSION_1: (&str, &str) = (
    "-----BEGIN CERTIFICATE-----\n\
     MIIBJTCBywIUWq05ST5+s2Uc8EXZrsPkKFk/GvMwCgYIKoZIzj0EAwIwFDESMBAG\n\
     A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDIzMTQ1NFoYDzIxMjYxMTA2MjMxNDU0\n\
     WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n\
     AASVoHhjy1Tu5RGKXnRrq+zwS9ls37azZDAAjpmxwzKfF3Z2NDhbgr3fxr/Msthq\n\
     /rYg8n4cWlmej0dCHdNNi7YNMAoGCCqGSM49BAMCA0kAMEYCIQCRVMG9b3tupk55\n\
     a3+zMUsMHs0TBq4KzYXb9qpHbW3O5wIhAKSxW5ZIXuW32+gGa0I6EQWBPgvnvzbm\n\
     0eiAG+T5lRmT\n\
     -----END CERTIFICATE-----\n",
    "-----BEGIN EC PRIVATE KEY-----\n\
     MHcCAQEEINjzAqTdpfseoiK7aOjkqqS5EnU8NQYSNd9Jv/8sL/cQoAoGCCqGSM49\n\
     AwEHoUQDQgAElaB4Y8tU7uURil50a6vs8EvZbN+2s2QwAI6ZscMynxd2djQ4W4K9\n\
     38a/zLLYav62IPJ+HFpZno9HQh3TTYu2DQ==\n\
     -----END EC PRIVATE KEY-----\n",
);

/// A key that ring does not sign with.
const OF_P_521: &str = "-----BEGIN PRIVATE KEY-----\n\
     MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIAuV2sPRkswP70AHP/\n\
     0X/N1Y93EAf2pmoes/1hnISkewOfqGZVBDngDD0i/APqlE8Jza3/7sT+amWvScWv\n\
     gedp1QGhgYkDgYYABAC1XYJfoW3s5iBgf2XmvDyibqeNxj3tJ7C4bpg35/My4zJb\n\
     42cmNxCAJfcdOeDiBKfvFc/lOTQjv8MzKqgIt6MeNwAYw/ET3vSNqbloHSNcZluO\n\
     h3BZvihshY0VVVRZSsKq1uLjLZ8GgYtYLWCquBRME2CsB0Dj2abmzkRdkEBKk1Wo\n\
     Kw==\n\
     -----END PRIVATE KEY-----\n";

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
        told(Part::Key, "is encrypted; a key here has no passphrase (openssl pkey -in FILE -out NEW takes it away)")
    );
    const LEGACY: &str =
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,8C5F8C7A\n\nAAAA\n-----END EC PRIVATE KEY-----\n";
    assert!(wrong(|s| s.key = LEGACY.to_owned()).1.starts_with("is encrypted; "), "openssl rsa -aes128 -traditional");
    assert_eq!(wrong(|s| s.key = OF_P_521.to_owned()), told(Part::Key, KEYS));
    assert_eq!(
        wrong(|s| s.certificate = format!("{}{}", pair().0, s.certificate)),
        told(Part::Certificate, "begins with a certificate that the key does not belong to: the server's own has to come first")
    );
    assert_eq!(
        wrong(|s| (s.certificate, s.key) = (format!("{0}{0}", s.certificate), pair().1)),
        told(Part::Key, "is not the key of the certificate")
    );
    assert_eq!(wrong(|s| (s.certificate, s.key) = (OF_VERSION_1.0.to_owned(), OF_VERSION_1.1.to_owned())), told(Part::Certificate, VERSION_1));
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

#[test]
fn what_is_no_pem_is_told_with_what_makes_pem_of_it() {
    use rustls::pki_types::pem::PemObject as _;
    let (certificate, key) = pair();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    // The version, what is kept and how; and the same where ends are marked.
    let (pkcs_12, endless) = ([0x30, 0x82, 0, 8, 2, 1, 3, 0x30, 3, 6, 1, 0x2a], [0x30, 0x80, 2, 1, 3, 0x30, 0x80]);
    let told = |bytes: &[u8]| not_pem(bytes).and_then(|told| told.split(';').nth(1)).map(|told| told.split(" -").next().unwrap().trim());
    assert_eq!(told(&certificate), Some("openssl x509"));
    assert_eq!(told(key.secret_der()), Some("openssl pkey"));
    assert_eq!([told(&pkcs_12), told(&endless)], [Some("openssl pkcs12"); 2]);
    assert_eq!([told(b""), told(b"\x30"), told(b"\xff\xfe-"), told(b"-----BEGIN CERTIFICATE-----\n")], [None; 4]);
}
