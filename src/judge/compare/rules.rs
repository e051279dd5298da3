//! Every kind of change, what it means, and the words for it. `docs/drift.md` shows this table.

use super::ChangeClass::{self, Annotation, Breaking, Compatible, Description};

/// What a change means on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The class.
    pub class: ChangeClass,
    /// The words for it.
    pub what: &'static str,
}

/// One kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The members or keywords it is about.
    pub at: &'static str,
    /// What it means in an `inputSchema`, which says what callers may send; for what is in no
    /// schema, what it means there.
    pub input: Meaning,
    /// What it means in an `outputSchema`, which says what callers may be sent.
    pub output: Meaning,
    /// Whether it is about what is accepted. Inside of a condition such a change is never harmless.
    pub constrains: bool,
}

/// Less is accepted.
const fn narrower(at: &'static str, what: &'static str) -> Rule {
    sides(at, (Breaking, what), (Compatible, what))
}

/// More is accepted.
const fn wider(at: &'static str, what: &'static str) -> Rule {
    sides(at, (Compatible, what), (Breaking, what))
}

/// Nobody can tell whether it is more or less.
const fn unclear(at: &'static str, what: &'static str) -> Rule {
    sides(at, (Breaking, what), (Breaking, what))
}

const fn sides(at: &'static str, input: (ChangeClass, &'static str), output: (ChangeClass, &'static str)) -> Rule {
    let input = Meaning { class: input.0, what: input.1 };
    let output = Meaning { class: output.0, what: output.1 };
    Rule { at, input, output, constrains: true }
}

/// Nothing else is accepted than before.
const fn note(at: &'static str, class: ChangeClass, what: &'static str) -> Rule {
    let meaning = Meaning { class, what };
    Rule { at, input: meaning, output: meaning, constrains: false }
}

/// Names the rules and lists them.
macro_rules! rules {
    ($(#[$about:meta])* $list:ident: $($name:ident = $rule:expr;)*) => {
        $(pub(super) const $name: Rule = $rule;)*
        $(#[$about])*
        pub const $list: &[Rule] = &[$($name),*];
    };
}

rules! {
    /// Changes in a schema.
    SCHEMA_RULES:
    TYPE_NARROWER = narrower("`type`", "the type is narrower");
    TYPE_WIDER = wider("`type`", "the type is wider");
    TYPE_OTHER = unclear("`type`", "the type is another");
    NULL_GONE = narrower("`type`, `nullable`, `anyOf`", "null is no longer allowed");
    NULL_NEW = wider("`type`, `nullable`, `anyOf`", "null is allowed now");
    LISTED_ONLY = narrower("`enum`, `const`", "only listed values are allowed now");
    UNLISTED_TOO = wider("`enum`, `const`", "values that are not listed are allowed now");
    VALUE_GONE = narrower("`enum`, `const`", "a listed value is gone");
    VALUE_NEW = wider("`enum`, `const`", "a new listed value");
    MEMBER_NEW_REQUIRED = sides("`properties`, `required`", (Breaking, "a new required parameter"), (Compatible, "a new property that is always there"));
    MEMBER_NEW = sides("`properties`", (Compatible, "a new optional parameter"), (Compatible, "a new property that may be there"));
    MEMBER_NEW_CLOSED = sides(
        "`properties` beside `additionalProperties: false`",
        (Compatible, "a new optional parameter where no others were allowed"),
        (Breaking, "a new property where no others were allowed"),
    );
    MEMBER_GONE_REQUIRED = sides(
        "`properties`, `required`",
        (Breaking, "a required parameter is gone: nothing says any longer what is made of it"),
        (Breaking, "a property that was always there is gone"),
    );
    MEMBER_GONE = sides(
        "`properties`",
        (Breaking, "an optional parameter is gone: nothing says any longer what is made of it"),
        (Compatible, "a property that could be missing is gone"),
    );
    MEMBER_GONE_CLOSED = sides(
        "`properties` beside `additionalProperties: false`",
        (Breaking, "a parameter is gone, and others are refused"),
        (Compatible, "a property that could be missing is gone, and others are ruled out"),
    );
    REQUIRED_NEW = sides("`required`", (Breaking, "a parameter is required now"), (Compatible, "a property is always there now"));
    REQUIRED_GONE = sides("`required`", (Compatible, "a parameter may be left out now"), (Breaking, "a property may be missing now"));
    OTHERS_REFUSED = narrower("`additionalProperties`", "other properties are no longer allowed");
    OTHERS_ALLOWED = wider("`additionalProperties`", "other properties are allowed now");
    NAME_PATTERN = unclear("`patternProperties`", "another pattern for names: it cannot be shown to accept what was accepted");
    DEPENDENCY_NEW = narrower("`dependentRequired`", "one property requires another now");
    DEPENDENCY_GONE = wider("`dependentRequired`", "one property no longer requires another");
    BOUND_TIGHTER = narrower("`minimum`, `maxLength`, `minItems`, …", "a new or tighter bound");
    BOUND_LOOSER = wider("`minimum`, `maxLength`, `minItems`, …", "a bound is gone or looser");
    STEP_OTHER = unclear("`multipleOf`", "another step: it cannot be shown to accept what was accepted");
    PATTERN_NEW = narrower("`pattern`", "a new pattern");
    PATTERN_GONE = wider("`pattern`", "a pattern is gone");
    PATTERN_OTHER = unclear("`pattern`", "another pattern: it cannot be shown to accept what was accepted");
    FORMAT_NEW = narrower("`format`", "a new format");
    FORMAT_GONE = wider("`format`", "a format is gone");
    FORMAT_OTHER = unclear("`format`", "another format: it cannot be shown to accept what was accepted");
    UNIQUE_NEW = narrower("`uniqueItems`", "elements must differ now");
    UNIQUE_GONE = wider("`uniqueItems`", "elements may be alike now");
    CONTENT_OTHER = unclear("`contentEncoding`, `contentMediaType`, `contentSchema`", "what a text holds is another");
    ALTERNATIVE_NEW = wider("`anyOf`, `oneOf` of which one alone can match", "a new alternative");
    ALTERNATIVE_GONE = narrower("`anyOf`, `oneOf` of which one alone can match", "an alternative is gone");
    ONE_OF_OTHER = unclear("`oneOf` of which several can match", "other alternatives that rule each other out");
    CONDITION_NEW = narrower("`allOf`, `anyOf`, `not`, `if`, `contains`, `propertyNames`, `dependentSchemas`", "a new condition");
    CONDITION_GONE = wider("`allOf`, `anyOf`, `not`, `if`, `contains`, `propertyNames`, `dependentSchemas`", "a condition is gone");
    INSIDE = unclear(
        "anything inside of `not`, `if`, such a `oneOf`, beside `unevaluatedProperties`, or in a schema that is not followed throughout",
        "changed where nobody can tell more from less: it cannot be shown to accept what was accepted",
    );
    UNKNOWN = unclear("a keyword that is not known", "a keyword that is not known is another: it cannot be shown to accept what was accepted");
    MALFORMED = unclear("a keyword of the wrong type", "what no schema can say is another: it cannot be shown to accept what was accepted");
    REFERENCE = unclear("`$ref` to elsewhere or to nothing", "a reference that cannot be followed is another");
    DIALECT_OTHER = unclear("`$schema`", "another dialect, in which this may mean something else");
    DIALECT_ALIKE = note("`$schema`", Compatible, "another dialect, in which this means the same");
    DEFAULT = note("`default`", Compatible, "another default: a call that leaves it out may do something else");
    SCHEMA_TITLE = note("`title`", Description, "another title");
    SCHEMA_TEXT = note("`description`", Description, "another description");
    EXAMPLES = note("`examples`", Description, "other examples");
    COMMENT = note("`$comment`", Description, "another comment");
    EXTENSION = note("`x-…`, `markdownDescription`, `enumNames`, …", Description, "another extension: it constrains nothing, yet a model may read it");
    UNUSED_TEXT = note("a text in a definition that nothing refers to", Description, "another text that a model may read");
    MARK = note("`deprecated`, `readOnly`, `writeOnly`", Annotation, "another mark");
    REWRITTEN = note("a definition moved, an order, another way to say it", Compatible, "written differently, means the same");
    DEFINITION = note("`$defs`, `definitions`", Compatible, "a definition is another; where it is used it means the same");
    UNSURE = unclear(
        "anything in a schema with `$id` inside, `$anchor`, `$dynamicRef`, or one key twice",
        "it cannot be shown to mean the same",
    );
}

rules! {
    /// Changes elsewhere in an item.
    ITEM_RULES:
    TITLE = note("`title`", Description, "another title");
    TEXT = note("`description`", Description, "another description");
    NAME = note("`name` of a resource or a template", Description, "another name");
    IDENTITY = note("`name` of a tool or prompt, `uri`, `uriTemplate`", Breaking, "it is called by something else");
    INPUT = note("`inputSchema` of a tool", Breaking, "the schema of the input is new or gone");
    OUTPUT_NEW = note("`outputSchema` of a tool", Compatible, "what comes back is promised now");
    OUTPUT_GONE = note("`outputSchema` of a tool", Breaking, "what comes back is no longer promised");
    TASKS_ALLOWED = note("`execution.taskSupport` of a tool", Compatible, "more ways to call it are allowed now");
    TASKS_OTHER = note("`execution.taskSupport` of a tool", Breaking, "a way to call it is no longer allowed");
    HINT = note("`annotations`: `readOnlyHint`, `audience`, `priority`, …", Annotation, "another annotation");
    HINT_TEXT = note("`annotations`: `title`, and texts that the protocol does not name", Description, "another text among the annotations");
    ARGUMENT_NEW_REQUIRED = note("`arguments` of a prompt", Breaking, "a new required argument");
    ARGUMENT_NEW = note("`arguments` of a prompt", Compatible, "a new optional argument");
    ARGUMENT_GONE = note("`arguments` of a prompt", Breaking, "an argument is gone");
    ARGUMENT_REQUIRED = note("`arguments` of a prompt", Breaking, "an argument is required now");
    ARGUMENT_OPTIONAL = note("`arguments` of a prompt", Compatible, "an argument may be left out now");
    MIME_NEW = note("`mimeType` of a resource or a template", Compatible, "the type of its content is told now");
    MIME_OTHER = note("`mimeType` of a resource or a template", Breaking, "the type of its content is another, or no longer told");
    ITEM_EXTENSION = note("`x-…`", Description, "another extension: it constrains nothing, yet a model may read it");
    BOOKKEEPING = note("`_meta`, `icons` of an argument", Annotation, "other bookkeeping");
    MEMBER_UNKNOWN = note("a member that the protocol does not name", Breaking, "a member that is not known is another: it cannot be shown to be harmless");
    UNREADABLE = note("the whole item", Breaking, "it cannot be compared");
    TOO_MUCH = note("the whole item", Breaking, "it is too large to be compared whole: it cannot be shown to accept what was accepted");
}

/// The words of the last change where there are more than are told; its class is that of the worst.
pub(super) const MORE: &str = "there are more changes than are told";
