//! Who may ask: TLS, clients' certificates, users, the paths that are for everybody.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::RwLock;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::sync::watch;

use super::passwords::{Checked, Passwords};
use super::routes::plain;
use crate::outside::clock;
use crate::outside::tls::{Answering, Clients, Expiry};

/// Who may ask, and how.
#[derive(Debug, Default)]
pub struct Access {
    /// TLS; plain HTTP without.
    pub tls: Option<Answering>,
    /// Users and the bcrypt hashes of their passwords; everybody without.
    pub users: BTreeMap<String, String>,
    /// Paths for everybody.
    pub excluded: BTreeSet<String>,
    /// Header fields of every answer.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Who has authenticated sees what is private.
    pub shows_private: bool,
}

impl Access {
    /// Whether nobody gets in, but to the paths for everybody, without having shown who it is.
    #[must_use]
    pub fn authenticates(&self) -> bool {
        let clients = self.clients().map(|clients| clients.auth());
        !self.users.is_empty() || clients.is_some_and(|auth| auth.requires() && auth.verifies())
    }

    /// Until when its certificates are of use.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        self.tls.as_ref().map(|tls| tls.expiry).unwrap_or_default()
    }

    fn clients(&self) -> Option<&Arc<Clients>> {
        self.tls.as_ref()?.clients.as_ref()
    }
}

/// Who asks, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Caller {
    /// A user, or the owner of a certificate that an authority of ours vouches for.
    pub(super) authenticated: bool,
    /// Sees what is private.
    pub(super) sees_private: bool,
    /// The rules ask who calls: who has not authenticated is nobody, on this machine too.
    pub(super) asked: bool,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}

/// How a connection came about; handed to what answers its requests.
#[derive(Clone, Debug)]
pub(super) enum Line {
    /// Without TLS.
    Plain,
    /// With TLS.
    Tls {
        /// The client's certificates, its own first; none where it has shown none.
        certificates: Arc<[CertificateDer<'static>]>,
        /// Who has looked at them.
        by: Option<Arc<Clients>>,
    },
}

/// Where a connection comes from; handed to what answers its requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// Handed to what answers a request: an answer without end has to end when other rules hold than let its caller in.
#[derive(Clone, Debug)]
pub(super) struct Rules(watch::Receiver<()>);

impl Rules {
    /// Resolves when other rules hold.
    pub(super) async fn replaced(&mut self) {
        let _ = self.0.changed().await;
    }
}

/// Stands at the door, with the rules that hold now.
pub struct Guard {
    access: RwLock<Arc<Access>>,
    replaced: watch::Sender<()>,
    passwords: Passwords,
}

impl Guard {
    /// A guard with these rules.
    #[must_use]
    pub fn new(access: Access) -> Arc<Guard> {
        Arc::new(Guard { access: RwLock::new(Arc::new(access)), replaced: watch::Sender::new(()), passwords: Passwords::new() })
    }

    /// The rules that hold now.
    #[must_use]
    pub fn access(&self) -> Arc<Access> {
        Arc::clone(&self.access.read())
    }

    /// From here on these rules hold: for new connections, and for requests on those that there are. Answers without end are ended.
    pub fn replace(&self, access: Access) {
        *self.access.write() = Arc::new(access);
        self.replaced.send_replace(());
    }

    /// Who asks; or what is answered to who may not.
    async fn caller(&self, access: &Access, path: &str, headers: &HeaderMap, line: Option<&Line>, peer: Option<Peer>) -> Result<Caller, Response> {
        if access.tls.is_some() && matches!(line, Some(Line::Plain)) {
            return Err(ended(plain(StatusCode::BAD_REQUEST, NO_TLS)));
        }
        if access.excluded.contains(path) {
            return Ok(Caller::of(false, access));
        }
        let certified = access.clients().and_then(|clients| Some((clients, line?))).is_some_and(|(clients, line)| line.is_taken_by(clients));
        if access.clients().is_some_and(|clients| clients.auth().requires()) && !certified {
            // It can show none on this connection any more.
            return Err(ended(plain(StatusCode::UNAUTHORIZED, "this takes a client's certificate\n")));
        }
        let vouched = certified && access.clients().is_some_and(|clients| clients.auth().verifies());
        if access.users.is_empty() {
            return Ok(Caller::of(vouched, access));
        }
        let Some((user, password)) = headers.get(AUTHORIZATION).and_then(credentials) else { return Err(unauthorized()) };
        match self.passwords.check(&access.users, &user, password, peer.map(|peer| peer.0)).await {
            Checked::Right => Ok(Caller::of(true, access)),
            Checked::Wrong => Err(unauthorized()),
            Checked::Crowded => {
                let mut response = plain(StatusCode::TOO_MANY_REQUESTS, "too many passwords wait to be checked\n");
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                Err(response)
            }
        }
    }
}

impl Caller {
    fn of(authenticated: bool, access: &Access) -> Caller {
        Caller { authenticated, sees_private: authenticated && access.shows_private, asked: access.authenticates() }
    }
}

impl Line {
    /// Whether there is a certificate that is taken, by rules that may have changed since it was shown.
    fn is_taken_by(&self, clients: &Arc<Clients>) -> bool {
        let Line::Tls { certificates, by } = self else { return false };
        let known = by.as_ref().is_some_and(|by| Arc::ptr_eq(by, clients));
        let now = || UnixTime::since_unix_epoch(std::time::Duration::from_secs_f64(clock::now().unix_seconds().max(0.0)));
        !certificates.is_empty() && (known || clients.takes(certificates, now()))
    }
}

/// What somebody is told that speaks plain HTTP where TLS is spoken.
pub(super) const NO_TLS: &str = "this is HTTPS: the request came over plain HTTP\n";

/// Puts `guard` before everything that `router` answers.
pub(super) fn guarded(router: Router, guard: Arc<Guard>) -> Router {
    Router::new().fallback_service(router).layer(from_fn_with_state(guard, admit))
}

async fn admit(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    // First, so that no change goes unseen.
    let rules = Rules(guard.replaced.subscribe());
    let access = guard.access();
    let line = request.extensions().get::<Line>().cloned();
    let peer = request.extensions().get::<Peer>().copied();
    let mut response = match guard.caller(&access, request.uri().path(), request.headers(), line.as_ref(), peer).await {
        Ok(caller) => {
            request.extensions_mut().insert(rules);
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refused) => refused,
    };
    for (name, value) in &access.headers {
        response.headers_mut().insert(name, value.clone());
    }
    response
}

fn unauthorized() -> Response {
    let mut response = plain(StatusCode::UNAUTHORIZED, "this takes a user and a password\n");
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"stdiowatch\", charset=\"UTF-8\""));
    response
}

fn ended(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The user and the password of `Basic` authentication (RFC 7617). What is no UTF-8 is no user's name.
fn credentials(field: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, encoded) = field.to_str().ok()?.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let at = decoded.iter().position(|b| *b == b':')?;
    let user = String::from_utf8(decoded.get(..at)?.to_vec()).ok()?;
    Some((user, decoded.get(at + 1..)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_they_are_written() {
        let read = |field: &str| credentials(&HeaderValue::from_str(field).unwrap());
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.as_bytes().to_vec()));
        assert_eq!(read("Basic YTpi"), pair("a", "b"));
        assert_eq!(read("bAsIc  YTpi "), pair("a", "b"));
        assert_eq!(read("Basic YTpiOmM="), pair("a", "b:c"));
        assert_eq!(read("Basic Og=="), pair("", ""));
        for wrong in ["", "Basic", "Basic ", "Basic YQ==", "Bearer YTpi", "Basic YTpi, Basic YTpi", "Basic ????", "Basic /zpi", "BasicYTpi"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
