//! The JSON reader and the canonical form, against other people's.

use stdiowatch::protocol::json::{Doc, JsonError, Kind, Oddity, Sameness, Value, write_canonical, write_pretty};

/// What serde_json reads, and no further: 128 levels.
const SERDE_DEPTH: usize = 120;

/// The input is a document.
pub fn run(data: &[u8]) {
    let theirs = serde_json::from_slice::<serde_json::Value>(data);
    let doc = match Doc::parse(data) {
        Ok(doc) => doc,
        Err(JsonError::TooMany) => return,
        Err(error) => return assert!(theirs.is_err(), "{error} in what serde_json reads"),
    };
    let (form, oddity) = canonical(doc.root());
    as_serde_json_does(data, &doc, &form, oddity, theirs);
    let again = Doc::parse(&form).expect("a canonical form is JSON");
    let twice = canonical(again.root());
    assert_eq!(String::from_utf8_lossy(&twice.0), String::from_utf8_lossy(&form), "canonical twice");
    // What was no UTF-8 is U+FFFD now, and then the next odd thing is told.
    assert!(twice.1 == oddity || oddity == Some(Oddity::NotUtf8), "{oddity:?}, then {:?}", twice.1);
    let mut pretty = Vec::new();
    write_pretty(doc.root(), 0, &mut pretty);
    let pretty = Doc::parse(&pretty).expect("what is written in many lines is JSON");
    assert_eq!(canonical(pretty.root()).0, form, "canonical of the same in many lines");
    if oddity != Some(Oddity::DuplicateKey) {
        let mut turned = Vec::new();
        turn(doc.root(), &mut turned);
        let turned = Doc::parse(&turned).expect("with its members turned around it is JSON");
        assert_eq!(canonical(turned.root()), (form.clone(), oddity), "canonical of the same in another order");
    }
    let mut sameness = Sameness::default();
    let numbers = (sameness.number(&again), sameness.number(&again));
    assert!(numbers.0.iter().eq(numbers.1.iter()), "a document is the same as itself");
}

fn canonical(value: Value<'_>) -> (Vec<u8>, Option<Oddity>) {
    let mut form = Vec::new();
    let oddity = write_canonical(value, &mut form);
    (form, oddity)
}

/// What nothing is odd about is read by serde_json too, and has the canonical form that its users write.
fn as_serde_json_does(data: &[u8], doc: &Doc<'_>, form: &[u8], oddity: Option<Oddity>, theirs: serde_json::Result<serde_json::Value>) {
    if oddity.is_some() || doc.oddities.depth > SERDE_DEPTH || std::str::from_utf8(data).is_err() {
        return;
    }
    match theirs {
        Ok(value) => {
            let wanted = serde_json_canonicalizer::to_vec(&value).expect("there is a canonical form");
            assert_eq!(String::from_utf8_lossy(form), String::from_utf8_lossy(&wanted));
        }
        Err(error) => assert!(error.to_string().contains("number out of range"), "{error} in what nothing is odd about"),
    }
}

/// The same with the members of every object in the opposite order. Recursion is as deep as `SERDE_DEPTH`; what lies
/// deeper is left as it is.
fn turn(value: Value<'_>, out: &mut Vec<u8>) {
    turn_at(value, 0, out);
}

fn turn_at(value: Value<'_>, depth: usize, out: &mut Vec<u8>) {
    match value.kind() {
        Kind::Object if depth < SERDE_DEPTH => {
            let mut members: Vec<_> = value.members().collect();
            members.reverse();
            out.push(b'{');
            for (n, (key, value)) in members.into_iter().enumerate() {
                out.extend_from_slice(if n > 0 { b"," } else { b"" });
                out.extend_from_slice(key.raw());
                out.push(b':');
                turn_at(value, depth + 1, out);
            }
            out.push(b'}');
        }
        Kind::Array if depth < SERDE_DEPTH => {
            out.push(b'[');
            for (n, value) in value.elements().enumerate() {
                out.extend_from_slice(if n > 0 { b"," } else { b"" });
                turn_at(value, depth + 1, out);
            }
            out.push(b']');
        }
        Kind::Object | Kind::Array | Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite | Kind::String => out.extend_from_slice(value.raw()),
    }
}
