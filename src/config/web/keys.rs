//! The keys of a web configuration: Prometheus' exporters' own.

use super::super::kind::{Key, Keys, Kind, Names};
use super::super::text::Texts;
use crate::outside::tls::{CIPHER_SUITES, CURVES, ClientAuth};

const PATH: Kind = Kind::Text(Texts::Path);
const PEM: Kind = Kind::Text(Texts::Any);
const VERSION: Kind = Kind::Word(&["TLS12", "TLS13"]);
const HEADER: Kind = Kind::Text(Texts::Header);

/// The names in a table.
macro_rules! names_of {
    ($table:expr) => {{
        let mut names = [""; $table.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = $table[at].0;
            at += 1;
        }
        names
    }};
}

static CLIENT_AUTHS: [&str; ClientAuth::ALL.len()] = names_of!(ClientAuth::ALL);
static SUITES: [&str; CIPHER_SUITES.len()] = names_of!(CIPHER_SUITES);
static CURVE_NAMES: [&str; CURVES.len()] = names_of!(CURVES);

const fn key(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { name, kind, required: false, default, about }
}

/// A whole file.
pub static WEB: Keys = Keys {
    what: "a web configuration",
    example: "tls_server_config: {cert_file: server.crt, key_file: server.key}",
    keys: &[&[
        key("tls_server_config", Kind::Keys(&TLS), "", "TLS 1.2 and 1.3. Without it, plain HTTP is spoken."),
        key("http_server_config", Kind::Keys(&HTTP), "", "What is answered besides."),
        key(
            "basic_auth_users",
            Kind::Named(Names::Users, &Kind::Text(Texts::Bcrypt)),
            "{}",
            "Users and the bcrypt hashes of their passwords, cost 4 to 16. Who is none of them gets 401.",
        ),
        key(
            "auth_excluded_paths",
            Kind::List(&Kind::Text(Texts::Route)),
            "[/livez, /readyz]",
            "Paths, exactly as they are asked for, that need neither a user nor a client's certificate. None by default where a certificate is required.",
        ),
    ]],
    hints: &[
        ("rate_limit", "requests are not counted here: connections are bounded, answers come from memory, and passwords are checked one at a time"),
        ("tls_config", "here it is `tls_server_config`"),
        ("web_config", "that key is for stdiowatch's own configuration; this is the file that it names"),
        ("users", "here it is `basic_auth_users`"),
        ("headers", "it stands in `http_server_config`"),
        ("cert_file", "it stands in `tls_server_config`"),
        ("key_file", "it stands in `tls_server_config`"),
    ],
};

static TLS: Keys = Keys {
    what: "`tls_server_config`",
    example: "{cert_file: server.crt, key_file: server.key}",
    keys: &[&[
        key("cert_file", PATH, "", "A file with the certificate, and those between it and its authority, in PEM."),
        key("key_file", PATH, "", "A file with the certificate's key in PEM, without a passphrase."),
        key("cert", PEM, "", "The same as `cert_file` holds, instead of it."),
        key("key", PEM, "", "The same as `key_file` holds, instead of it."),
        key(
            "client_auth_type",
            Kind::Word(&CLIENT_AUTHS),
            "NoClientCert",
            "What is asked of clients; only `RequireAndVerifyClientCert` keeps anybody out.",
        ),
        key("client_ca_file", PATH, "", "A file with the certificates, in PEM, of those whose clients are taken."),
        key("client_ca", PEM, "", "The same as `client_ca_file` holds, instead of it."),
        key(
            "client_allowed_sans",
            Kind::List(&Kind::Text(Texts::Any)),
            "[]",
            "Hosts, addresses, e-mail addresses and URIs, one of which has to be a subject alternative name of a client's certificate, letter by letter.",
        ),
        key("min_version", VERSION, "TLS12", "The oldest version."),
        key("max_version", VERSION, "TLS13", "The newest version."),
        key("cipher_suites", Kind::List(&Kind::Word(&SUITES)), "", "Cipher suites of TLS 1.2. Those of TLS 1.3 are always there."),
        key("prefer_server_cipher_suites", Kind::Bool, "true", "The order of `cipher_suites` counts, and not the client's."),
        key("curve_preferences", Kind::List(&Kind::Word(&CURVE_NAMES)), "", "Curves, the preferred one first."),
    ]],
    hints: &[
        ("ca_file", "here it is `client_ca_file`"),
        ("insecure_skip_verify", "that is for who asks; here it is `client_auth_type`"),
        ("server_name", "that is for who asks"),
        ("client_allowed_common_names", "common names are not looked at; here it is `client_allowed_sans`"),
    ],
};

static HTTP: Keys = Keys {
    what: "`http_server_config`",
    example: "{headers: {Strict-Transport-Security: max-age=31536000}}",
    keys: &[&[
        key("http2", Kind::Bool, "false", "HTTP/1.1 is all that is spoken: `true` is refused."),
        key("headers", Kind::Keys(&HEADERS), "", "Header fields of every answer, in place of stdiowatch's own. An empty one stays as it is."),
    ]],
    hints: &[("compression", "metrics are packed where that is asked for")],
};

/// The header fields that may be set.
pub(super) static HEADERS: Keys = Keys {
    what: "`headers`",
    example: "{Strict-Transport-Security: max-age=31536000}",
    keys: &[&[
        key("Content-Security-Policy", HEADER, "", "What pages may load; theirs is strict."),
        key("X-Frame-Options", Kind::Word(&["deny", "sameorigin", ""]), "", "Who may show pages in frames; their policy says nobody already."),
        key("X-Content-Type-Options", Kind::Word(&["nosniff", ""]), "nosniff", "Nobody guesses what an answer is."),
        key("X-XSS-Protection", HEADER, "", "For browsers of long ago."),
        key("Strict-Transport-Security", HEADER, "", "Browsers come back over TLS only."),
    ]],
    hints: &[],
};
