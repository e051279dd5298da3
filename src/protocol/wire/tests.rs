use proptest::prelude::*;

use super::*;

const LIMIT: usize = 4096;
const REPLY: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// What the pieces of `chunks` are, a line each: `LINE@OFFSET fault` or `LINE@OFFSET message`.
fn pieces_of(chunks: &[&[u8]], limit: usize) -> Vec<String> {
    let mut framing = Framing::new(limit);
    let mut seen = Vec::new();
    let mut sink = |place: Place, piece: Piece<'_>| {
        let what = match piece {
            Piece::Fault(fault, _) => format!("{fault:?}"),
            Piece::Message(message, _) => describe(&message),
            Piece::Batch(messages, _) => format!("batch of {}", messages.iter().map(describe).collect::<Vec<_>>().join(" + ")),
        };
        seen.push(format!("{}@{} {what}", place.line, place.offset));
    };
    for chunk in chunks {
        framing.feed(chunk, &mut sink);
    }
    framing.finish(&mut sink);
    if let Some(tail) = framing.tail() {
        seen.push(format!("tail {}@{} {} bytes, message: {}", tail.place.line, tail.place.offset, tail.length, tail.is_message));
    }
    seen
}

fn describe(message: &Message<'_>) -> String {
    let id = message.id.as_ref().map_or("-".to_owned(), Id::to_string);
    let shape = match &message.shape {
        Shape::Request { method } => format!("request {method}"),
        Shape::Notification { method } => format!("notification {method}"),
        Shape::Result(_) => "result".to_owned(),
        Shape::Error { code, message, .. } => format!("error {code:?} {message}"),
        Shape::Nothing => "nothing".to_owned(),
    };
    let problems: String = message.problems.iter().map(|p| format!(", {p}")).collect();
    format!("id {id} {shape}{problems}")
}

fn pieces(text: impl AsRef<[u8]>) -> Vec<String> {
    pieces_of(&[text.as_ref()], LIMIT)
}

#[test]
fn one_message_a_line() {
    assert_eq!(
        pieces(format!("{REPLY}\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}\n")),
        ["1@0 id 1 result", "2@37 id - notification notifications/x"]
    );
    assert!(pieces("").is_empty());
}

#[test]
fn noise_is_told_from_json_that_is_no_message() {
    assert_eq!(pieces("Server mode: STDIO\n"), ["1@0 Noise"]);
    assert_eq!(pieces("[INFO] up\n"), ["1@0 Noise"]);
    assert_eq!(pieces("{\"status\":200,\"message\":\"ok\"}\n"), ["1@0 NotJsonRpc"]);
    assert_eq!(
        pieces("{\"method\":\"GET\",\"path\":\"/\"}\n42\n[]\n[1]\n"),
        ["1@0 NotJsonRpc", "2@28 NotJsonRpc", "3@31 NotJsonRpc", "4@34 NotJsonRpc"]
    );
}

#[test]
fn a_message_between_other_bytes_is_found() {
    assert_eq!(pieces(format!("\x1b[?25l{REPLY}\n")), ["1@0 Glued { at: 6, after: 0 }", "1@0 id 1 result"]);
    assert_eq!(pieces(format!("\r 10%\r100%\r{REPLY}\x1b[0m\n"))[0], "1@0 Glued { at: 11, after: 4 }");
    assert_eq!(
        pieces(format!("{REPLY}{}\n", REPLY.replace(":1,", ":2,"))),
        ["1@0 Glued { at: 0, after: 36 }", "1@0 id 1 result", "1@0 Glued { at: 36, after: 0 }", "1@0 id 2 result"]
    );
    assert_eq!(pieces(format!("config {{\"a\":1}} {REPLY}\n")).last().unwrap(), "1@0 id 1 result");
    assert_eq!(pieces("x {\"a\":1} y\n"), ["1@0 Noise"]);
}

#[test]
fn a_message_over_several_lines_is_joined() {
    let pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {\n    \"a\": \"}\"\n  }\n}\n";
    assert_eq!(pieces(pretty), ["1@0 MultiLine { lines: 7 }", "1@0 id 1 result"]);
    assert_eq!(
        pieces("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"a\nb\"}}\n"),
        ["1@0 MultiLine { lines: 2 }", "1@0 id 1 result"],
        "a raw newline in a string"
    );
    assert_eq!(pieces(format!("{{\n{REPLY}\n")), ["1@0 Noise", "2@2 id 1 result"], "a stray brace does not swallow what follows");
    assert_eq!(pieces("{\nhello\n"), ["1@0 Noise", "2@2 Noise"]);
    assert_eq!(pieces(format!("{{\n{}", "\"a\":1,\n".repeat(LIMIT))).first().unwrap(), "1@0 Noise", "bounded");
}

#[test]
fn lines_that_were_taken_for_a_message_are_told_where_they_stand() {
    assert_eq!(pieces("{\"a\n\n\nb\n"), ["1@0 Noise", "4@6 Noise"], "newlines in what may be a string");
    assert_eq!(pieces("{\"a\nb\"\n}}\n{\n"), ["1@0 Noise", "2@4 Noise", "3@7 Noise", "4@10 Noise"]);
    let text = |lines: usize| format!("{{\"{}", "0123456\n".repeat(lines));
    let told = pieces(text(2 * LIMIT / 8));
    assert_eq!(told.len(), 2 * LIMIT / 8);
    assert!(told.iter().enumerate().skip(1).all(|(n, told)| *told == format!("{}@{} Noise", n + 1, 8 * n + 2)), "{told:?}");
}

#[test]
fn what_nobody_waits_for_is_not_held() {
    let mut framing = Framing::new(1 << 20);
    let mut seen = Vec::new();
    let mut sink = |place: Place, piece: Piece<'_>| seen.push((place.line, matches!(piece, Piece::Fault(Fault::TooLong { .. }, _))));
    framing.feed(&[b'a'; 300 << 10], &mut sink);
    assert!(framing.held() >= 300 << 10);
    framing.drop_long_lines();
    assert!(framing.held() < 1 << 10);
    framing.feed(&[b'a'; 300 << 10], &mut sink);
    framing.feed(b"\n", &mut sink);
    framing.feed(&[&[b'a'; 100 << 10][..], b"\nshort\n", REPLY.as_bytes(), b"\n"].concat(), &mut sink);
    assert!(framing.held() < 1 << 10);
    assert_eq!(seen, [(3, false), (4, false)]);
}

#[test]
fn other_framings_are_called_by_their_name() {
    assert_eq!(
        pieces(format!("Content-Length: 36\r\n\r\n{REPLY}")),
        ["1@0 CrLf", "1@0 LspFraming", "2@20 CrLf", "2@20 Blank", "tail 3@22 36 bytes, message: true"]
    );
    assert_eq!(pieces(format!("{REPLY}Content-Length: 36\r\n")), ["1@0 CrLf", "1@0 LspFraming", "1@0 id 1 result"]);
    assert_eq!(pieces(format!("[{REPLY}]\n")), ["1@0 batch of id 1 result"]);
}

#[test]
fn encodings() {
    assert_eq!(pieces(format!("\u{feff}{REPLY}\r\n")), ["1@0 CrLf", "1@0 Bom", "1@0 id 1 result"]);
    assert_eq!(
        pieces([b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}\n".as_slice()].concat()),
        ["1@0 NotUtf8 { at: 39 }", "1@0 id 1 result"]
    );
    let utf16: Vec<u8> = REPLY.encode_utf16().flat_map(u16::to_le_bytes).chain(*b"\n\0").collect();
    assert_eq!(pieces([b"\xff\xfe", utf16.as_slice()].concat()), ["1@0 NotUtf8 { at: 0 }", "1@0 Noise", "tail 2@75 1 bytes, message: false"]);
    assert_eq!(pieces("\n  \n"), ["1@0 Blank", "2@1 Blank"]);
}

#[test]
fn odd_json_is_read_and_named() {
    let with = |result: &str| pieces(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}\n"));
    assert_eq!(with("{\"a\":NaN}"), ["1@0 NonFinite { at: 38 }", "1@0 id 1 result"]);
    assert_eq!(with("{\"a\":\"\\ud800\"}"), ["1@0 LoneSurrogate { at: 39 }", "1@0 id 1 result"]);
    assert_eq!(with("{\"a\":1,\"a\":2}"), ["1@0 DuplicateKey { pointer: \"/result/a\" }", "1@0 id 1 result"]);
}

#[test]
fn what_breaks_json_rpc_is_said_and_read() {
    for (text, wanted) in [
        (r#"{"id":1,"result":{}}"#, "id 1 result, it has no \"jsonrpc\": \"2.0\""),
        (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "id 1 result, its \"jsonrpc\" is not \"2.0\""),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#, "id 1 result, it has both a result and an error"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "id 1 nothing, it has neither a method, nor a result or an error"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "id null request ping, its id is null, which a request's may not be"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "id 1.5 request ping, its id is neither a string nor an integer"),
        (r#"{"jsonrpc":"2.0","method":7}"#, "id - nothing, its method is no string"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "id - result, it is a result without an id"),
        (r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, "id 1 error None no, its error is no object"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}"#, "id 1 error None , its error has no integer code, its error has no message"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#, "id null error Some(-32700) m"),
        (r#"{"jsonrpc":"2.0","method":"x","params":3}"#, "id - notification x, its params are neither an object nor an array"),
    ] {
        assert_eq!(pieces(format!("{text}\n")), [format!("1@0 {wanted}")]);
    }
}

#[test]
fn the_limit_counts_one_line_and_is_told_at_once() {
    let long = "A".repeat(LIMIT + 1);
    assert_eq!(pieces(&long), ["1@0 TooLong { limit: 4096 }", "tail 1@0 4097 bytes, message: false"]);
    assert_eq!(pieces(format!("{long}\n{REPLY}\n")), ["1@0 TooLong { limit: 4096 }", "2@4098 id 1 result"]);
    let exact = format!("{REPLY}{}\n", " ".repeat(LIMIT - REPLY.len()));
    assert_eq!(pieces(exact), ["1@0 id 1 result"]);
}

/// Streams made of what servers write, in any order.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(REPLY.as_bytes().to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"{\n".to_vec()),
        Just(b"}\n".to_vec()),
        Just(b"noise".to_vec()),
        Just(b"[".to_vec()),
        Just(b"]".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"Content-Length: 3\r\n\r\n".to_vec()),
        Just(vec![b'A'; 300]),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn what_is_seen_does_not_depend_on_how_the_bytes_were_cut(stream in stream(), cuts in prop::collection::vec(1usize..40, 1..50), limit in 1usize..500) {
        let whole = pieces_of(&[&stream], limit);
        let mut chunks = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (chunk, after) = rest.split_at((*cut).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(&whole, &pieces_of(&chunks, limit));
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&whole, &pieces_of(&bytes, limit));
    }
}
