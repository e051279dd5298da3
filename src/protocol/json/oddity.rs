use std::fmt;

/// What makes the canonical form of a value more than RFC 8785 says: two readers may see two different
/// values, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Oddity {
    /// An object has a key twice.
    DuplicateKey,
    /// Half a surrogate pair in a string.
    LoneSurrogate,
    /// A byte in a string that is no UTF-8.
    NotUtf8,
    /// `NaN` or an infinity.
    NonFinite,
    /// A number that no double holds, as `9007199254740993`.
    InexactNumber,
}

impl Oddity {
    /// All of them.
    pub const ALL: [Oddity; 5] = [Oddity::DuplicateKey, Oddity::LoneSurrogate, Oddity::NotUtf8, Oddity::NonFinite, Oddity::InexactNumber];

    /// The words for it: "there is …".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Oddity::DuplicateKey => "an object with the same key twice",
            Oddity::LoneSurrogate => "half a surrogate pair",
            Oddity::NotUtf8 => "a byte that is no UTF-8",
            Oddity::NonFinite => "a number that is not finite",
            Oddity::InexactNumber => "a number that a double does not hold",
        }
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
