//! The pages for people: `/`, an overview, and `/servers/NAME`, all about one server.
//!
//! They read without a script, and load nothing but the sheet, the script and the sign below from
//! where they came from: [`POLICY`] lets a browser do nothing else. Their templates are in
//! `src/show/templates`; `escape` says how everything is written that they are filled with.

mod changes;
pub(crate) mod escape;
mod overview;
mod plot;
mod server;
mod strip;
mod told;
mod words;

use std::sync::LazyLock;

use askama::Template;

use crate::ledger::{ServerState, Snapshot};
use crate::words::{Digest, Moment};

/// The `Content-Security-Policy` of the pages: no source but ours, no script or style within them.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
                          form-action 'none'; frame-ancestors 'none'";

/// The style sheet, `/page.css`.
pub const STYLE: &str = include_str!("../assets/page.css");

/// The script, `/page.js`: it swaps in the page's main part when something has changed, and filters.
pub const SCRIPT: &str = include_str!("../assets/page.js");

/// The sign in a browser's tab, `/icon.svg`.
pub const ICON: &str = include_str!("../assets/icon.svg");

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The document.
    pub html: String,
}

/// What a page is made from.
#[derive(Clone, Copy, Debug)]
pub struct View<'v> {
    /// What is known.
    pub snapshot: &'v Snapshot,
    /// Which state of it that is: a page knows by it that it is out of date.
    pub revision: &'v str,
    /// What time it is.
    pub now: Moment,
    /// Evidence, stderr, versions and what the server was given are shown too.
    pub show_private: bool,
}

impl Page {
    /// The overview.
    #[must_use]
    pub fn overview(view: View<'_>) -> Page {
        filled(&overview::Overview::of(view))
    }

    /// All about `server`, which is one of the snapshot's.
    #[must_use]
    pub fn server(view: View<'_>, server: &ServerState) -> Page {
        filled(&server::ServerPage::of(view, server))
    }

    /// Instead of a server's page, where no server is watched that is called `name`.
    #[must_use]
    pub fn no_such_server(view: View<'_>, name: &str) -> Page {
        let mut why = view.snapshot.reading.why_nobody(name).to_owned();
        if let Some(first) = why.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        filled(&Missing { frame: Frame::new("no such server", "../", view), why })
    }
}

fn filled(template: &impl Template) -> Page {
    // A template fails only if what it is written to does, and a string does not.
    Page { html: template.render().unwrap_or_default() }
}

/// What all pages have.
#[derive(Debug)]
struct Frame {
    title: String,
    /// The way from the page to `/`, which need not be the root of the host.
    root: &'static str,
    revision: String,
    at: words::Stamp,
    /// Part of the addresses of the sheet and the script, so that no cache serves those of another build.
    build: &'static str,
    version: &'static str,
}

impl Frame {
    fn new(title: &str, root: &'static str, view: View<'_>) -> Frame {
        static BUILD: LazyLock<String> =
            LazyLock::new(|| Digest::of_pieces([STYLE.as_bytes(), SCRIPT.as_bytes()]).to_string().chars().take(8).collect());
        Frame {
            title: format!("{title} · stdiowatch"),
            root,
            revision: view.revision.to_owned(),
            at: view.now.into(),
            build: &BUILD,
            version: if view.show_private { env!("CARGO_PKG_VERSION") } else { "" },
        }
    }
}

#[derive(Template)]
#[template(path = "missing.html")]
struct Missing {
    frame: Frame,
    why: String,
}
