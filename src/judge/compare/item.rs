//! The members of an item.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::json::{Kind, Value};
use crate::protocol::mcp::ListKind;

use super::found::{Place, Sense, Side, Work};
use super::rules::{self, Rule};
use super::view::Schema;
use super::walk::Walk;

/// A member on both sides.
#[derive(Clone, Copy)]
struct Member<'d> {
    place: Place,
    old: Option<Value<'d>>,
    new: Option<Value<'d>>,
}

/// Compares two items of a list of this kind.
pub(super) fn compare_items<'d>(work: &mut Work<'d>, kind: ListKind, old: Value<'d>, new: Value<'d>) {
    if old.kind() != Kind::Object || new.kind() != Kind::Object {
        if !work.is_same(Some(old), Some(new)) {
            work.tell(rules::UNREADABLE, Sense::Input, Place::ITEM, Some(old), Some(new));
        }
        return;
    }
    for (key, member) in members(work, Place::ITEM, Some(old), Some(new)) {
        let is_resource = matches!(kind, ListKind::Resources | ListKind::ResourceTemplates);
        match (kind, key.as_ref()) {
            (ListKind::Tools, "inputSchema") => schema(work, member, Sense::Input),
            (ListKind::Tools, "outputSchema") => schema(work, member, Sense::Output),
            (ListKind::Tools, "execution") => execution(work, member),
            (ListKind::Prompts, "arguments") => arguments(work, member),
            (_, "annotations") => annotations(work, member),
            (_, "name") if is_resource => tell(work, rules::NAME, member),
            (ListKind::Tools | ListKind::Prompts, "name") | (ListKind::Resources, "uri") | (ListKind::ResourceTemplates, "uriTemplate") => {
                tell(work, rules::IDENTITY, member);
            }
            (ListKind::Resources | ListKind::ResourceTemplates, "mimeType") => {
                tell(work, if member.old.is_none() { rules::MIME_NEW } else { rules::MIME_OTHER }, member);
            }
            (_, other) => common(work, other, member),
        }
    }
}

/// A member that all items, and arguments of prompts, have in common; or one that is not known.
fn common<'d>(work: &mut Work<'d>, key: &str, member: Member<'d>) {
    let rule = match key {
        "title" => rules::TITLE,
        "description" => rules::TEXT,
        "_meta" | "icons" => rules::BOOKKEEPING,
        extension if extension.starts_with("x-") => rules::ITEM_EXTENSION,
        _ => rules::MEMBER_UNKNOWN,
    };
    tell(work, rule, member);
}

/// Tells that a member is not the same, if it is not.
fn tell<'d>(work: &mut Work<'d>, rule: Rule, member: Member<'d>) {
    if !work.is_same(member.old, member.new) {
        work.tell(rule, Sense::Input, member.place, member.old, member.new);
    }
}

/// The members of two objects by their keys; the last of those with the same one.
fn members<'d>(work: &mut Work<'d>, at: Place, old: Option<Value<'d>>, new: Option<Value<'d>>) -> BTreeMap<Cow<'d, str>, Member<'d>> {
    let mut members: BTreeMap<Cow<'d, str>, Member<'d>> = BTreeMap::new();
    for (side, value) in [(Side::Old, old), (Side::New, new)] {
        for (key, value) in value.into_iter().flat_map(Value::members) {
            work.spend(1);
            let key = key.text().unwrap_or_default();
            let place = work.places.step(at, key.clone());
            let member = members.entry(key).or_insert(Member { place, old: None, new: None });
            match side {
                Side::Old => member.old = Some(value),
                Side::New => member.new = Some(value),
            }
        }
    }
    members
}

fn schema<'d>(work: &mut Work<'d>, member: Member<'d>, sense: Sense) {
    match (member.old, member.new) {
        (Some(old), Some(new)) => {
            let schema = |side, value| Schema { side, value, place: member.place };
            Walk::run(work, schema(Side::Old, old), schema(Side::New, new), sense);
        }
        (None, _) if sense == Sense::Output => tell(work, rules::OUTPUT_NEW, member),
        (_, None) if sense == Sense::Output => tell(work, rules::OUTPUT_GONE, member),
        _ => tell(work, rules::INPUT, member),
    }
}

/// How a tool may be called (MCP 2025-11-25, server/tools: `forbidden` is the default).
fn execution<'d>(work: &mut Work<'d>, whole: Member<'d>) {
    for (key, member) in members(work, whole.place, whole.old, whole.new) {
        if key != "taskSupport" {
            common(work, &key, member);
            continue;
        }
        // What is allowed: a plain call, and a call as a task.
        let allowed = |value: Option<Value<'d>>| match value.map_or(Cow::Borrowed("forbidden"), |v| v.text().unwrap_or_default()).as_ref() {
            "forbidden" => Some([true, false]),
            "optional" => Some([true, true]),
            "required" => Some([false, true]),
            _ => None,
        };
        match (allowed(member.old), allowed(member.new)) {
            (Some(old), Some(new)) if old == new => {
                if !work.is_same(member.old, member.new) {
                    tell(work, rules::REWRITTEN, whole);
                }
            }
            (Some(old), Some(new)) if old.iter().zip(new).all(|(old, new)| !old || new) => tell(work, rules::TASKS_ALLOWED, member),
            _ => tell(work, rules::TASKS_OTHER, member),
        }
    }
}

/// The members that the protocol names: of tools, then of resources (MCP 2025-11-25, schema).
const HINTS: [&str; 7] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "audience", "priority", "lastModified"];

fn annotations<'d>(work: &mut Work<'d>, whole: Member<'d>) {
    let is_object = |value: Option<Value<'d>>| value.is_none_or(|v| v.kind() == Kind::Object);
    if !is_object(whole.old) || !is_object(whole.new) {
        tell(work, rules::HINT_TEXT, whole);
        return;
    }
    for (key, member) in members(work, whole.place, whole.old, whole.new) {
        let says_little = |value: Option<Value<'d>>| value.is_none_or(|v| !matches!(v.kind(), Kind::String | Kind::Array | Kind::Object));
        let is_hint = HINTS.contains(&key.as_ref()) || (says_little(member.old) && says_little(member.new));
        tell(work, if is_hint { rules::HINT } else { rules::HINT_TEXT }, member);
    }
}

/// An argument of a prompt, and where it stands.
type Argument<'d> = (Value<'d>, Place);

fn arguments<'d>(work: &mut Work<'d>, whole: Member<'d>) {
    let (Some(old), Some(new)) = (arguments_of(work, whole.place, whole.old), arguments_of(work, whole.place, whole.new)) else {
        tell(work, rules::MEMBER_UNKNOWN, whole);
        return;
    };
    let names: BTreeSet<&Cow<'d, str>> = old.keys().chain(new.keys()).collect();
    for name in names {
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => argument(work, *old, *new),
            (None, Some((value, place))) => {
                let rule = if is_required(*value) { rules::ARGUMENT_NEW_REQUIRED } else { rules::ARGUMENT_NEW };
                work.tell(rule, Sense::Input, *place, None, Some(*value));
            }
            (Some((value, place)), None) => work.tell(rules::ARGUMENT_GONE, Sense::Input, *place, Some(*value), None),
            (None, None) => {}
        }
    }
}

/// The arguments by their names; `None` if one has none, or two have the same.
fn arguments_of<'d>(work: &mut Work<'d>, at: Place, list: Option<Value<'d>>) -> Option<BTreeMap<Cow<'d, str>, Argument<'d>>> {
    let mut arguments = BTreeMap::new();
    if list.is_some_and(|list| list.kind() != Kind::Array) {
        return None;
    }
    for (n, value) in list.into_iter().flat_map(Value::elements).enumerate() {
        work.spend(1);
        let name = value.get("name").and_then(Value::text)?;
        let place = work.places.step(at, n.to_string());
        if arguments.insert(name, (value, place)).is_some() {
            return None;
        }
    }
    Some(arguments)
}

fn is_required(argument: Value<'_>) -> bool {
    argument.get("required").and_then(Value::boolean) == Some(true)
}

fn argument<'d>(work: &mut Work<'d>, old: Argument<'d>, new: Argument<'d>) {
    for (key, member) in members(work, new.1, Some(old.0), Some(new.0)) {
        let is_flag = |value: Option<Value<'d>>| value.is_none_or(|v| v.kind() == Kind::Bool);
        match key.as_ref() {
            "name" => {}
            "required" if is_flag(member.old) && is_flag(member.new) => match (is_required(old.0), is_required(new.0)) {
                (false, true) => tell(work, rules::ARGUMENT_REQUIRED, member),
                (true, false) => tell(work, rules::ARGUMENT_OPTIONAL, member),
                (true, true) | (false, false) => {}
            },
            other => common(work, other, member),
        }
    }
}
