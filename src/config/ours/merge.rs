//! `defaults` and a server into one.

use super::super::kind::{Keys, Kind};
use super::super::tree::{Member, Node, Value};

/// A server's own keys, and those that it leaves to the defaults. Mappings are merged key by key, everything
/// else is replaced whole; so is `call`: arguments of one tool are none of another's.
pub(super) fn merge(defaults: &Node, own: &Node, keys: &'static Keys) -> Node {
    merged(defaults, own, &|key| keys.get(key).map(|key| &key.kind))
}

fn merged(defaults: &Node, own: &Node, kind_of: &dyn Fn(&str) -> Option<&'static Kind>) -> Node {
    let (Value::Map(theirs), Value::Map(ours)) = (&defaults.value, &own.value) else { return own.clone() };
    let mut members = ours.clone();
    for their in theirs {
        // What does not belong into defaults is told of there.
        let Some(kind) = kind_of(&their.key) else { continue };
        match members.iter_mut().find(|member| member.key == their.key) {
            None => members.push(their.clone()),
            Some(member) => deeper(their, member, kind),
        }
    }
    Node { at: own.at, value: Value::Map(members) }
}

/// The tables are a few levels deep, and so is this.
fn deeper(their: &Member, member: &mut Member, kind: &'static Kind) {
    match kind {
        Kind::Keys(keys) => member.value = merged(&their.value, &member.value, &|key| keys.get(key).map(|key| &key.kind)),
        Kind::Named(_, value) => member.value = merged(&their.value, &member.value, &|_| Some(value)),
        Kind::Either(kinds) => {
            if let Some(named) = kinds.iter().find(|kind| matches!(kind, Kind::Named(..))) {
                deeper(their, member, named);
            }
        }
        Kind::Text(_) | Kind::Scalar | Kind::Word(_) | Kind::Amount(_) | Kind::Bool | Kind::List(_) | Kind::Json | Kind::Object => {}
    }
}
