//! Which messages get a reply, and under which id.

use super::*;

#[test]
fn silence_is_kept_to_where_it_is_due() {
    let ping = request("ping", json!({}));
    let hang = server(Kind::Hang);
    assert_eq!(hang.answer(&request("tools/list", json!({}))), Answer::Silence);
    assert_ne!(hang.answer(&ping), Answer::Silence);
    result(&hang, "initialize", opening("2025-11-25"));

    let mute = server(Kind::Mute);
    assert_eq!(mute.answer(&ping), Answer::Silence);
    assert_eq!(mute.answer_line(b"nonsense"), Answer::Silence);
}

#[test]
fn notifications_and_responses_get_no_reply() {
    for kind in [Kind::Sound, Kind::SoundModern, Kind::SoundDual] {
        for message in [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "method": "notifications/unheard_of", "params": []}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
            json!({"jsonrpc": "2.0", "error": {"code": 1, "message": ""}}),
        ] {
            assert_eq!(server(kind).answer(&message), Answer::Silence, "{message}");
        }
    }
}

#[test]
fn a_broken_request_is_refused_under_its_id_where_it_has_one() {
    for (message, id, code) in [
        (json!({"id": 1, "method": "ping"}), json!(1), -32600),
        (json!({"jsonrpc": "2.0", "id": "a"}), json!("a"), -32600),
        (json!({"jsonrpc": "2.0", "id": 1, "method": 2}), json!(1), -32600),
        (json!({"jsonrpc": "2.0", "id": null, "method": "ping"}), json!(null), -32600),
        (json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}), json!(null), -32600),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}), json!(1), -32602),
        (json!([]), json!(null), -32600),
        (json!("ping"), json!(null), -32600),
    ] {
        let reply = reply(&server(Kind::Sound), &message);
        assert_eq!((&reply["id"], reply["error"]["code"].as_i64()), (&id, Some(code)), "{message}");
    }
}

#[test]
fn ids_come_back_as_they_are() {
    for id in [json!(0), json!(-1), json!("x"), json!(u64::MAX), json!("")] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        assert_eq!(reply(&server(Kind::Sound), &request)["id"], id);
    }
}

#[test]
fn batches_exist_in_the_legacy_era_only() {
    let batch = json!([
        request("ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        [],
    ]);
    let Answer::Reply(replies) = server(Kind::Sound).answer(&batch) else { panic!() };
    assert_eq!(replies.as_array().unwrap().len(), 2);
    assert_eq!(server(Kind::Sound).answer(&json!([{"jsonrpc": "2.0", "method": "x"}])), Answer::Silence);
    assert_eq!(error(&server(Kind::SoundModern), &batch)["code"], -32600);
}
