use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    let doc = Doc::parse(text.as_bytes()).unwrap();
    let mut out = Vec::new();
    write_canonical(doc.root(), &[], &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn values_are_found_where_they_are() {
    let doc = Doc::parse(br#" {"a": [1, {"b": "x\u00e9\n"}], "c": null, "d": true} "#).unwrap();
    let root = doc.root();
    assert_eq!(root.members().count(), 3);
    let a = root.get("a").unwrap();
    assert_eq!(a.elements().count(), 2);
    assert_eq!(a.elements().next().unwrap().integer(), Some(1));
    assert_eq!(a.elements().nth(1).unwrap().get("b").unwrap().text().unwrap(), "xé\n");
    assert_eq!(root.get("d").unwrap().boolean(), Some(true));
    assert_eq!(root.get("e").map(Value::kind), None);
    assert_eq!(a.get("b").map(Value::kind), None, "an array has no members");
}

#[test]
fn what_is_no_json_says_where() {
    use JsonError::{Incomplete, Invalid};
    for (text, error) in [
        ("", Incomplete),
        ("  ", Incomplete),
        ("{", Incomplete),
        ("[1,", Incomplete),
        ("{\"a\":", Incomplete),
        ("\"a", Incomplete),
        ("tru", Incomplete),
        ("-", Incomplete),
        ("1.", Incomplete),
        ("1e", Incomplete),
        ("\"\\u12", Incomplete),
        ("-Inf", Incomplete),
        ("Server", Invalid(0)),
        ("{a", Invalid(1)),
        ("[1 2]", Invalid(3)),
        ("{\"a\" 1}", Invalid(5)),
        ("[1,]", Invalid(3)),
        ("{\"a\":1,}", Invalid(7)),
        ("\"\\x\"", Invalid(2)),
        ("\"a\tb\"", Invalid(2)),
        ("1 2", Invalid(2)),
        ("01", Invalid(1)),
        ("truth", Invalid(3)),
        ("[1}", Invalid(2)),
        ("{\"a\":1]", Invalid(6)),
        ("\"\\u12g4\"", Invalid(5)),
        ("+1", Invalid(0)),
    ] {
        assert_eq!(Doc::parse(text.as_bytes()).map(|_| ()).unwrap_err(), error, "{text:?}");
    }
}

#[test]
fn a_value_may_be_followed_by_something_else() {
    let (doc, end) = Doc::parse_prefix(b"{\"a\":1}{\"b\":2}").unwrap();
    assert_eq!((doc.root().kind(), end), (Kind::Object, 7));
}

#[test]
fn oddities_are_noted_and_read_on() {
    let odd = |text: &str| Doc::parse(text.as_bytes()).unwrap().oddities;
    assert_eq!(odd(r#"{"a":"x\ud800y"}"#).lone_surrogate, Some(7));
    assert_eq!(odd(r#"{"a":"\udc00\ud800"}"#).lone_surrogate, Some(6));
    assert_eq!(odd(r#"{"a":"\ud83d\ude00"}"#).lone_surrogate, None);
    assert_eq!(odd("[1,NaN,-Infinity]").non_finite, Some(3));
    assert_eq!(odd(r#"{"t":[{"d":1},{"d":1,"e/f":2,"\u0064":3}]}"#).duplicate_key.as_deref(), Some("/t/1/d"));
    assert_eq!(odd(r#"{"a":{"a":1},"b":[{"a":1},{"a":1}]}"#).duplicate_key, None);
    let many: Vec<String> = (0..40).map(|n| format!("\"k{}\":0", n % 39)).collect();
    assert_eq!(odd(&format!("{{{}}}", many.join(","))).duplicate_key.as_deref(), Some("/k0"));
    assert_eq!(odd("[[[]],[]]").depth, 3);
}

#[test]
fn depth_costs_no_stack() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let doc = Doc::parse(deep.as_bytes()).unwrap();
    assert_eq!(doc.oddities.depth, 500_000);
    let mut out = Vec::new();
    write_canonical(doc.root(), &[], &mut out);
    assert_eq!(out, deep.as_bytes());
}

#[test]
fn values_are_bounded() {
    let many = format!("[{}1]", "1,".repeat(MAX_VALUES));
    assert_eq!(Doc::parse(many.as_bytes()).map(|_| ()).unwrap_err(), JsonError::TooMany);
}

#[test]
fn the_canonical_form_is_rfc_8785() {
    // RFC 8785, sections 3.2.2 and 3.2.3.
    assert_eq!(
        canonical(
            r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#
        ),
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(
        canonical(
            r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#
        ),
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
    );
}

#[test]
fn what_the_rfc_cannot_hold_has_a_form_too() {
    assert_eq!(canonical(r#"{"a":"x\uD800y"}"#), r#"{"a":"x\ud800y"}"#);
    assert_eq!(canonical("[NaN]"), "[NaN]");
    assert_eq!(canonical(r#"{"b":1,"a":2,"b":3}"#), r#"{"a":2,"b":1,"b":3}"#);
}

#[test]
fn members_of_the_outermost_object_can_be_left_out() {
    let without = |skip: &[&[&str]], text: &str| {
        let doc = Doc::parse(text.as_bytes()).unwrap();
        let mut out = Vec::new();
        assert_eq!(write_canonical(doc.root(), skip, &mut out), None);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(without(&[&["_meta"]], r#"{"_meta":{"a":1},"n":{"_meta":2}}"#), r#"{"n":{"_meta":2}}"#);
    assert_eq!(without(&[&["_meta"]], r#"{"_m\u0065ta":1,"_meta":{"a":1,"a":2}}"#), "{}", "however it is written; what is left out is not odd");
    assert_eq!(without(&[&["_meta"]], r#"[{"_meta":1}]"#), r#"[{"_meta":1}]"#);
    let skip: &[&[&str]] = &[&["size"], &["a", "at"]];
    assert_eq!(
        without(skip, r#"{"size":1,"b":{"at":1,"size":2},"a":{"p":{"at":3},"at":4,"size":5}}"#),
        r#"{"a":{"p":{"at":3},"size":5},"b":{"at":1,"size":2}}"#
    );
    assert_eq!(without(skip, r#"{"a":{"at":4},"b":1}"#), r#"{"b":1}"#, "with its last member it goes");
    assert_eq!(without(skip, r#"{"a":"at"}"#), r#"{"a":"at"}"#);
}

#[test]
fn what_is_beyond_the_rfc_is_told() {
    let odd = |text: &[u8]| {
        let doc = Doc::parse(text).unwrap();
        write_canonical(doc.root(), &[], &mut Vec::new())
    };
    for (text, wanted) in [
        (&br#"{"a":[1,"x",{"b":0.1,"c":1e23}],"d":"\ud83d\ude00"}"#[..], None),
        (br#"[{"a":1,"b":2,"a":3}]"#, Some(Oddity::DuplicateKey)),
        (br#"{"\u0061":1,"a":3}"#, Some(Oddity::DuplicateKey)),
        (b"{\"\xc3\xa9\":1,\"\\u00e9\":3}", Some(Oddity::DuplicateKey)),
        (br#"{"a":{"b":1},"b":1,"c":{"b":1}}"#, None),
        (br#"["\ud800"]"#, Some(Oddity::LoneSurrogate)),
        (br#"{"\udc00":1}"#, Some(Oddity::LoneSurrogate)),
        (b"[\"\xff\"]", Some(Oddity::NotUtf8)),
        (b"[-Infinity]", Some(Oddity::NonFinite)),
        (b"[9007199254740993]", Some(Oddity::InexactNumber)),
        (b"[9007199254740993,\"\\ud800\",{\"a\":1,\"a\":1}]", Some(Oddity::DuplicateKey)),
        (b"[9007199254740993,NaN,\"\\ud800\"]", Some(Oddity::LoneSurrogate)),
    ] {
        assert_eq!(odd(text), wanted, "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn keys_are_sorted_by_their_utf_16_code_units_whatever_their_length() {
    for keys in [
        ["", "a"],
        ["a", "aa"],
        ["abcdefg", "abcdefgh"],
        ["abcdefgh", "abcdefghi"],
        ["abcdefghA", "abcdefgha"],
        ["\u{1f600}", "\u{ffff}"],
        ["z", "\u{e9}"],
    ] {
        let text = serde_json::json!({ keys[1]: 1, keys[0]: 0 });
        let wanted = format!("{{{}:0,{}:1}}", serde_json::json!(keys[0]), serde_json::json!(keys[1]));
        assert_eq!(canonical(&text.to_string()), wanted);
        assert_eq!(canonical(&wanted), wanted);
    }
}

#[test]
fn a_stop_is_found_wherever_it_stands() {
    for length in 0..40 {
        for (stop, is_stop) in [
            (b'"', true),
            (b'\\', true),
            (0, true),
            (0x1f, true),
            (b' ', false),
            (0x7f, false),
            (b'!', false),
            (b'#', false),
            (0x80, false),
            (0xff, false),
        ] {
            for filler in [b'a', b' ', 0x7f, 0xc3, b'!', b']'] {
                let mut text = vec![filler; length];
                text.push(stop);
                text.extend([b'"'; 9]);
                let end = if is_stop { length } else { length + 1 };
                assert_eq!(text::plain_run(&text), (end, !text[..end].is_ascii()), "{text:?}");
            }
        }
    }
    assert_eq!(text::plain_run(b"abcdefghij"), (10, false), "it may end without one");
}

/// Any JSON value, as text with random white space and member order is derived from it.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..8).prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_serde_json_on_what_is_json(value in json()) {
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let compact = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(canonical(&pretty), canonical(&compact));
        prop_assert_eq!(canonical(&canonical(&pretty)), canonical(&compact));
    }

    #[test]
    fn any_bytes_end_in_an_answer(bytes in prop::collection::vec(prop_oneof![Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b'"'), Just(b':'), Just(b','), Just(b'\\'), Just(b'u'), Just(b'1'), Just(b'-'), Just(b'e'), Just(b'.'), any::<u8>()], 0..60)) {
        let ours = Doc::parse(&bytes);
        if let Ok(doc) = &ours {
            let mut out = Vec::new();
            write_canonical(doc.root(), &[], &mut out);
        }
        let theirs = serde_json::from_slice::<&serde_json::value::RawValue>(&bytes);
        if theirs.is_ok() {
            prop_assert!(ours.is_ok());
        } else if let Ok(doc) = ours {
            let forgiven = doc.oddities.non_finite.is_some() || std::str::from_utf8(&bytes).is_err();
            prop_assert!(forgiven, "{:?}", theirs);
        }
    }
}
