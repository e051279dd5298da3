//! What is said when we have made a mistake: where, and nothing that a server or a configuration has put there.

use std::any::Any;
use std::panic::Location;

/// Says of a panic where it was, on stderr. Std would quote what it was about, and that can be a line of a server's
/// with a secret in it, or a configured value.
pub(super) fn are_told_without_secrets() {
    std::panic::set_hook(Box::new(|panic| eprintln!("{}", words(panic.location(), panic.payload()))));
}

fn words(place: Option<&Location<'_>>, payload: &(dyn Any + Send)) -> String {
    let place = place.map_or_else(|| "somewhere".to_owned(), |place| format!("at {}:{}", place.file(), place.line()));
    // A literal of the source's: what is made up of values is a `String`.
    let what = payload.downcast_ref::<&'static str>().map(|what| format!(" ({what})")).unwrap_or_default();
    format!("stdiowatch: a mistake in stdiowatch {place}{what}; please report it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panic_is_about_is_not_told() {
        let told = |panic: fn(&str)| {
            let payload = std::panic::catch_unwind(|| panic(std::hint::black_box("secret é"))).unwrap_err();
            words(Some(Location::caller()), payload.as_ref())
        };
        let quoting: [fn(&str); 4] = [
            |text| panic!("{text}"),
            |text| drop(text[..8].to_owned()),
            |text| assert_eq!(text.parse::<u8>().unwrap(), 0),
            |text| assert_eq!(text, ""),
        ];
        for panic in quoting {
            let told = told(panic);
            assert!(told.contains("panics.rs:") && !told.contains("secret"), "{told}");
        }
        assert!(told(|text| assert_eq!(text.strip_prefix("x").unwrap(), "")).contains("`Option::unwrap()` on a `None` value"));
    }
}
