//! Where two canonical documents first differ.

use super::{Doc, Kind, Value};

/// JSON pointer (RFC 6901) of the first difference between two canonical documents, as it is: not
/// escaped, not bounded. Empty if they are the same, or differ as a whole.
#[must_use]
pub fn first_difference(a: &[u8], b: &[u8]) -> String {
    let (Ok(a), Ok(b)) = (Doc::parse(a), Doc::parse(b)) else {
        return String::new();
    };
    let mut pointer = String::new();
    let (mut a, mut b) = (a.root(), b.root());
    while let Some((step, x, y)) = differing_member(a, b) {
        pointer.push('/');
        pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        match (x, y) {
            (Some(x), Some(y)) => (a, b) = (x, y),
            _ => break,
        }
    }
    pointer
}

type Differing<'a, 'b> = (String, Option<Value<'a>>, Option<Value<'b>>);

fn differing_member<'a, 'b>(a: Value<'a>, b: Value<'b>) -> Option<Differing<'a, 'b>> {
    match (a.kind(), b.kind()) {
        (Kind::Object, Kind::Object) => {
            let mut others = b.members();
            for (key, value) in a.members() {
                let other = others.next();
                match other {
                    Some((k, v)) if k.raw() == key.raw() && v.raw() == value.raw() => {}
                    Some((k, v)) if k.raw() == key.raw() => return Some((text(key), Some(value), Some(v))),
                    Some((k, _)) if b.get(&text(key)).is_some() => return Some((text(k), None, None)),
                    _ => return Some((text(key), None, None)),
                }
            }
            others.next().map(|(key, _)| (text(key), None, None))
        }
        (Kind::Array, Kind::Array) => {
            let mut others = b.elements();
            for (n, value) in a.elements().enumerate() {
                match others.next() {
                    Some(other) if other.raw() == value.raw() => {}
                    other => return Some((n.to_string(), Some(value), other)),
                }
            }
            others.next().map(|_| (a.elements().count().to_string(), None, None))
        }
        _ => None,
    }
}

fn text(key: Value<'_>) -> String {
    key.text().unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_difference_is_named() {
        for (a, b, pointer) in [
            (r#"{"a":1}"#, r#"{"a":1}"#, ""),
            (r#"{"a":1}"#, r#"{"a":2}"#, "/a"),
            (r#"{"a":{"b/c":[1,2]}}"#, r#"{"a":{"b/c":[1,3]}}"#, "/a/b~1c/1"),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, "/b"),
            (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, "/b"),
            (r#"{"a":1,"c":2}"#, r#"{"a":1,"b":1,"c":2}"#, "/b"),
            (r#"{"a":[1]}"#, r#"{"a":[1,2]}"#, "/a/1"),
            (r#"[1]"#, r#"{"a":1}"#, ""),
        ] {
            assert_eq!(first_difference(a.as_bytes(), b.as_bytes()), pointer, "{a} {b}");
        }
    }
}
