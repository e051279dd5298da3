//! What is nobody's secret: the words of the protocol, and those of JSON Schema. Short ones are left out, since nothing so short is
//! looked for.

/// The revisions that there are.
const VERSIONS: &str = "2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28";

/// Methods, members and fixed values of all of them (the published schemas).
const PROTOCOL: &str = "\
    $schema _meta accept action additionalProperties alert allServers annotations anyOf argument arguments array assistant \
    audience audio auto blob boolean cacheScope call cancel cancelled capabilities clientInfo code completed completion \
    completion/complete completions const content contents context costPriority create createMessage createdAt critical cursor \
    dark data date date-time debug decline default description destructiveHint elicitation elicitation/create elicitationId \
    elicitations email emergency enum enumNames error execution experimental extensions failed forbidden form format hasMore \
    hints icons idempotentHint image includeContext info initialize input inputRequests inputResponses inputSchema \
    input_required instructions integer intelligencePriority io.modelcontextprotocol/clientCapabilities \
    io.modelcontextprotocol/clientInfo io.modelcontextprotocol/logLevel io.modelcontextprotocol/protocolVersion \
    io.modelcontextprotocol/serverInfo io.modelcontextprotocol/subscriptionId isError items jsonrpc lastModified lastUpdatedAt \
    level light list listChanged logger logging logging/setLevel maxItems maxLength maxTokens maximum message messages metadata \
    method mimeType minItems minLength minimum mode model modelPreferences name nextCursor none notice notifications \
    notifications/cancelled notifications/elicitation/complete notifications/initialized notifications/message \
    notifications/progress notifications/prompts/list_changed notifications/resources/list_changed \
    notifications/resources/updated notifications/roots/list_changed notifications/subscriptions/acknowledged \
    notifications/tasks/status notifications/tools/list_changed number object oneOf openWorldHint optional outputSchema params \
    ping pollInterval priority private progress progressToken prompts prompts/get prompts/list promptsListChanged properties \
    protocolVersion public readOnlyHint reason ref/prompt ref/resource requestId requestState requested requestedSchema requests \
    required requiredCapabilities resource resourceSubscriptions resourceTemplates resource_link resources resources/list \
    resources/read resources/subscribe resources/templates/list resources/unsubscribe resourcesListChanged result resultType \
    role roots roots/list sampling sampling/createMessage server/discover serverInfo size sizes speedPriority status \
    statusMessage stopReason stopSequences string structuredContent subscribe subscriptions/listen supported supportedVersions \
    systemPrompt task taskId taskSupport tasks tasks/cancel tasks/get tasks/list tasks/result temperature text theme thisServer \
    title toolChoice toolUseId tool_result tool_use tools tools/call tools/list toolsListChanged total ttlMs type uriTemplate \
    user value values version warning websiteUrl working";

/// The keywords and types of JSON Schema, 2020-12 and draft 7, that the protocol does not have itself.
const SCHEMA: &str = "\
    $anchor $comment $defs $dynamicAnchor $dynamicRef $ref $vocabulary additionalItems allOf contains contentEncoding \
    contentMediaType contentSchema definitions dependencies dependentRequired dependentSchemas deprecated else examples \
    exclusiveMaximum exclusiveMinimum maxContains maxProperties minContains minProperties multipleOf null nullable pattern \
    patternProperties prefixItems propertyNames readOnly then unevaluatedItems unevaluatedProperties uniqueItems writeOnly";

/// The error codes of JSON-RPC (section 5.1) and of the protocol, without their sign.
const CODES: [&str; 12] = ["32700", "32600", "32601", "32602", "32603", "32000", "32001", "32002", "32020", "32021", "32022", "32042"];

/// The longest word, in bytes, and a little more: what is longer is none.
pub(super) const LONGEST: usize = 64;

/// What words are made of.
pub(super) const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'$')
}

/// Whether this is, as a whole, such a word.
pub(super) fn is_protocols(word: &[u8]) -> bool {
    let is_in = |words: &str| words.split_ascii_whitespace().any(|known| known.as_bytes() == word);
    is_in(VERSIONS) || is_in(PROTOCOL) || is_in(SCHEMA)
}

/// Whether these are the digits of such a code.
pub(super) fn is_code(digits: &[u8]) -> bool {
    CODES.iter().any(|code| code.as_bytes() == digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_are_made_of_letters_and_none_is_too_long() {
        for words in [VERSIONS, PROTOCOL, SCHEMA] {
            for word in words.split_ascii_whitespace() {
                assert!(word.len() < LONGEST && word.bytes().all(is_letter) && is_protocols(word.as_bytes()), "{word}");
            }
        }
        assert!(!is_protocols(b"tool") && !is_protocols(b"") && !is_protocols(b"tools prompts"));
    }
}
