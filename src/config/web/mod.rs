//! A web configuration: who may ask over HTTP, and how, in the manner of Prometheus' exporter toolkit.

mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::file::{self, BEGINNING, NOWHERE};
use super::kind::{Kind, or};
use super::read::{Got, Reader, What};
use super::tree::{Place, Problem};
use super::{FileProblem, shown, yaml};
use crate::outside::tls::{Answering, CIPHER_SUITES, CURVES, ClientAuth, Part, Settings, Version, answering};

pub use keys::WEB;

static WHOLE: Kind = Kind::Keys(&WEB);
/// The largest file, and the largest one with certificates, in bytes.
const LARGEST: u64 = 1 << 20;

/// What a web configuration says, certificates and all.
#[derive(Debug, Default)]
pub struct Web {
    /// TLS; plain HTTP without.
    pub tls: Option<Answering>,
    /// Users and the bcrypt hashes of their passwords.
    pub users: BTreeMap<String, String>,
    /// Paths for everybody.
    pub excluded: BTreeSet<String>,
    /// Header fields of every answer; names and values are such.
    pub headers: Vec<(String, String)>,
    /// All files that were read: this one, and those that it names.
    pub files: Vec<PathBuf>,
    /// Where the certificate and the authority are named.
    places: [Option<Place>; 2],
}

impl Web {
    /// Where something of TLS is named in the file; its beginning where it is not.
    #[must_use]
    pub fn place_of(&self, part: Part) -> Place {
        let [certificate, authority] = self.places;
        match part {
            Part::Certificate => certificate,
            Part::ClientAuthority => authority,
            Part::Key | Part::Versions => None,
        }
        .unwrap_or(BEGINNING)
    }
}

/// Reads a web configuration with the files that it names. Relative paths are taken from its own directory. A
/// dollar is a dollar: hashes are full of them.
///
/// # Errors
///
/// Everything that is wrong, by its place.
pub fn load(path: &Path) -> Result<Web, Vec<FileProblem>> {
    let text = file::text(path, LARGEST).map_err(|problem| vec![FileProblem { file: path.to_owned(), problem }])?;
    read(&text, path)
}

/// The same of a file whose text is at hand.
///
/// # Errors
///
/// The same.
pub fn read(text: &str, path: &Path) -> Result<Web, Vec<FileProblem>> {
    let in_file = |problem| FileProblem { file: path.to_owned(), problem };
    let mut lowering = Lowering { path, problems: Vec::new(), files: vec![path.to_owned()] };
    let web = understand(text, &mut lowering);
    let mut problems = lowering.problems;
    problems.sort_by_key(|problem| problem.at);
    match web {
        Some(web) if problems.is_empty() => Ok(Web { files: lowering.files, ..web }),
        Some(_) | None => Err(problems.into_iter().map(in_file).collect()),
    }
}

fn understand(text: &str, lowering: &mut Lowering<'_>) -> Option<Web> {
    // A file that is being written is empty for a moment: that lets nobody in.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        let message = "there is nothing in it; write `basic_auth_users` or `tls_server_config`, or {} to let everybody in".to_owned();
        lowering.problems.push(Problem { at: BEGINNING, message });
        return None;
    }
    let (root, problems) = yaml::read(text);
    lowering.problems.extend(problems);
    let root = root?;
    let mut reader = Reader::new(None);
    let whole = reader.read(&root, &WHOLE);
    lowering.problems.extend(reader.problems);
    let whole = whole.filter(|_| lowering.problems.is_empty())?;
    Some(lowering.web(&whole))
}

/// What says nothing of any server, and is asked by what has no password.
const PROBED: [&str; 2] = ["/livez", "/readyz"];

struct Lowering<'p> {
    path: &'p Path,
    problems: Vec<Problem>,
    files: Vec<PathBuf>,
}

impl Lowering<'_> {
    fn wrong(&mut self, at: Place, message: impl Into<String>) {
        self.problems.push(Problem { at, message: message.into() });
    }

    fn web(&mut self, whole: &Got) -> Web {
        let entries = |path: &[&str]| whole.at_path(path).map(Got::entries).unwrap_or_default();
        let pairs = |path: &[&str]| entries(path).iter().filter_map(|(name, _, value)| Some((name.clone(), value.text()?.to_owned())));
        let mut excluded: BTreeSet<String> = texts(whole, &["auth_excluded_paths"]).map(str::to_owned).collect();
        // A kubelet has neither password nor certificate, and restarts what does not answer it. A handshake that
        // keeps out whoever has no certificate is not made weaker without a word.
        let names_none = whole.at_path(&["auth_excluded_paths"]).is_none();
        let required = whole.at_path(&["tls_server_config", "client_auth_type"]).and_then(Got::text).is_some_and(|auth| auth.starts_with("Require"));
        if names_none && !required {
            excluded.extend(PROBED.map(str::to_owned));
        }
        if let Some(http2) = whole.at_path(&["http_server_config", "http2"]).filter(|got| got.what == What::Bool(true)) {
            self.wrong(http2.at, "`http_server_config.http2` is true; HTTP/1.1 is all that is spoken here: write false, or nothing");
        }
        let named = |keys: [&str; 2]| keys.iter().find_map(|key| whole.at_path(&["tls_server_config", key])).map(|got| got.at);
        Web {
            places: [named(["cert_file", "cert"]), named(["client_ca_file", "client_ca"])],
            tls: whole.at_path(&["tls_server_config"]).and_then(|tls| self.tls(tls, !excluded.is_empty())),
            users: pairs(&["basic_auth_users"]).collect(),
            headers: pairs(&["http_server_config", "headers"]).filter(|(_, value)| !value.is_empty()).collect(),
            excluded,
            files: Vec::new(),
        }
    }

    fn tls(&mut self, tls: &Got, exempts: bool) -> Option<Answering> {
        let certificate = self.pem(tls, "cert", "cert_file");
        let key = self.pem(tls, "key", "key_file");
        let authority = self.pem(tls, "client_ca", "client_ca_file");
        for (missing, name) in [(certificate.is_none(), "cert_file"), (key.is_none(), "key_file")] {
            if missing && self.problems.is_empty() {
                self.wrong(tls.at, format!("`tls_server_config` has no `{name}`; write a path"));
            }
        }
        let (client_auth, client_names) = self.clients(tls, authority.is_some());
        let version = |key: &str| tls.at_path(&[key]).and_then(Got::text).map(|text| if text == "TLS13" { Version::Tls13 } else { Version::Tls12 });
        let versions = (version("min_version").unwrap_or(Version::Tls12), version("max_version").unwrap_or(Version::Tls13));
        if let Some(newest) = tls.at_path(&["max_version"]).filter(|_| versions.0 > versions.1) {
            self.wrong(newest.at, "`tls_server_config.max_version` is older than `min_version`; leave one of them out");
        }
        let settings = Settings {
            certificate: certificate.as_ref()?.text.clone(),
            key: key.as_ref()?.text.clone(),
            client_auth,
            client_authority: authority.as_ref().map(|pem| pem.text.clone()),
            client_names,
            exempts,
            versions,
            suites: found(tls, "cipher_suites", &CIPHER_SUITES),
            curves: found(tls, "curve_preferences", &CURVES),
            prefer_own_order: tls.at_path(&["prefer_server_cipher_suites"]).is_none_or(|got| got.what == What::Bool(true)),
        };
        if !self.problems.is_empty() {
            return None;
        }
        let place = |pem: &Option<Pem>| pem.as_ref().map_or((tls.at, "`tls_server_config`".to_owned()), |pem| (pem.at, pem.shown.clone()));
        match answering(settings) {
            Ok(answering) => Some(answering),
            Err((part, why)) => {
                let (at, shown) = match part {
                    Part::Certificate => place(&certificate),
                    Part::Key => place(&key),
                    Part::ClientAuthority => place(&authority),
                    Part::Versions => place(&None),
                };
                self.wrong(at, format!("{shown} {why}"));
                None
            }
        }
    }

    /// What is asked of clients.
    fn clients(&mut self, tls: &Got, has_authority: bool) -> (ClientAuth, Vec<String>) {
        let written = tls.at_path(&["client_auth_type"]).and_then(Got::text);
        let auth = ClientAuth::ALL.into_iter().find(|(name, _)| Some(*name) == written).map(|(_, auth)| auth).unwrap_or_default();
        let at = |keys: &[&str]| keys.iter().find_map(|key| tls.at_path(&[key])).map_or(tls.at, |got| got.at);
        if auth.verifies() && !has_authority {
            self.wrong(
                at(&["client_auth_type"]),
                "`tls_server_config.client_auth_type` needs to know whose certificates to take: write `client_ca_file`",
            );
        }
        let names: Vec<&str> = ClientAuth::ALL.iter().filter(|(_, auth)| auth.verifies()).map(|(name, _)| *name).collect();
        if has_authority && !auth.verifies() {
            let message =
                format!("`tls_server_config` says whose certificates to take, and not to look at them: write `client_auth_type: {}`", or(&names));
            self.wrong(at(&["client_ca_file", "client_ca"]), message);
        }
        let allowed: Vec<String> = texts(tls, &["client_allowed_sans"]).map(str::to_owned).collect();
        if !allowed.is_empty() && !auth.requires() {
            let message = "`tls_server_config.client_allowed_sans` is for clients that need a certificate: write `client_auth_type: RequireAndVerifyClientCert`";
            self.wrong(at(&["client_allowed_sans"]), message);
        }
        (auth, allowed)
    }

    /// What stands under one key, or in the file under the other.
    fn pem(&mut self, tls: &Got, inline: &str, file: &str) -> Option<Pem> {
        let of = |key: &str| tls.at_path(&[key]).and_then(|got| Some((got.text()?, got.at)));
        match (of(inline), of(file)) {
            (Some(_), Some((_, at))) => {
                self.wrong(at, format!("`tls_server_config.{file}` and `tls_server_config.{inline}` say the same thing; leave one of them out"));
                None
            }
            (Some((text, at)), None) => Some(Pem { text: text.to_owned(), at, shown: format!("`tls_server_config.{inline}`") }),
            (None, Some((path, at))) => self.file(path, at),
            (None, None) => None,
        }
    }

    fn file(&mut self, path: &str, at: Place) -> Option<Pem> {
        let path = std::path::absolute(self.path).unwrap_or_else(|_| self.path.to_owned()).parent().unwrap_or(Path::new("/")).join(path);
        let shown = shown(&path);
        match file::pem(&path, LARGEST) {
            Ok(text) => {
                self.files.push(path);
                Some(Pem { text, at, shown })
            }
            Err(problem) => {
                let place = if problem.at == NOWHERE { String::new() } else { format!(":{}", problem.at) };
                self.wrong(at, format!("{shown}{place}: {}", problem.message));
                None
            }
        }
    }
}

/// Something in PEM, where it is named, and what to call it.
struct Pem {
    text: String,
    at: Place,
    shown: String,
}

fn texts<'g>(got: &'g Got, path: &[&str]) -> impl Iterator<Item = &'g str> {
    got.at_path(path).map(Got::elements).unwrap_or_default().iter().filter_map(Got::text)
}

/// What the words of a list stand for.
fn found<T: Copy>(got: &Got, key: &str, table: &[(&str, T)]) -> Vec<T> {
    texts(got, &[key]).filter_map(|word| table.iter().find(|(name, _)| *name == word)).map(|(_, meant)| *meant).collect()
}
