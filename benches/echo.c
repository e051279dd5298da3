// The quickest MCP server there is: answers initialize and tools/list (some 10 KiB), ends with its input.
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#define TEXT "Does a thing with the given arguments and returns a structured answer. "
#define TOOL(n) "{\"name\":\"tool_0" n "\",\"title\":\"Tool number " n "\",\"description\":\"" TEXT TEXT "\",\"inputSchema\":{\"type\":\"object\"," \
    "\"properties\":{\"path\":{\"type\":\"string\",\"description\":\"The path to operate on, relative to the root\"}," \
    "\"limit\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000,\"default\":100},\"recursive\":{\"type\":\"boolean\",\"default\":false}," \
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"a\",\"b\",\"c\",\"d\"]}}}," \
    "\"required\":[\"path\"],\"additionalProperties\":false},\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}"
#define FOUR(n) TOOL(n "0") "," TOOL(n "1") "," TOOL(n "2") "," TOOL(n "3")
static const char TOOLS[] = ",\"result\":{\"tools\":[" FOUR("0") "," FOUR("1") "," FOUR("2") "," FOUR("3") "]}}\n";
static const char GREETING[] = ",\"capabilities\":{\"tools\":{\"listChanged\":false}},\"serverInfo\":{\"name\":\"echo\",\"version\":\"1.0.0\"}}}\n";

static char in[1 << 16], out[1 << 15];
static size_t length;

static void put(const char *text, size_t n) {
    memcpy(out + length, text, n);
    length += n;
}

#define PUT(text) put(text, sizeof(text) - 1)

/// A member's value, as it stands.
static const char *value(const char *line, size_t n, const char *key, size_t k, size_t *size) {
    const char *at = memmem(line, n, key, k);
    if (!at) return 0;
    for (at += k; *at == ':' || *at == ' '; at++);
    const char *end = at + 1;
    if (*at == '"') {
        for (; *end != '"'; end++);
        end++;
    } else {
        for (; *end != ',' && *end != '}'; end++);
    }
    *size = end - at;
    return at;
}

#define VALUE(key, size) value(line, n, "\"" key "\"", sizeof(key) + 1, size)

static void answer(const char *line, size_t n) {
    size_t id_size, method_size, version_size;
    const char *id = VALUE("id", &id_size), *method = VALUE("method", &method_size), *version = VALUE("protocolVersion", &version_size);
    if (!id || !method) return;
    length = 0;
    PUT("{\"jsonrpc\":\"2.0\",\"id\":");
    put(id, id_size);
    if (!strncmp(method, "\"initialize\"", method_size)) {
        PUT(",\"result\":{\"protocolVersion\":");
        put(version ? version : "\"2025-11-25\"", version ? version_size : 12);
        PUT(GREETING);
    } else if (!strncmp(method, "\"tools/list\"", method_size)) {
        PUT(TOOLS);
    } else {
        PUT(",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n");
    }
    for (size_t done = 0; done < length;) {
        ssize_t k = write(1, out + done, length - done);
        if (k <= 0) _exit(3);
        done += k;
    }
}

int main(void) {
    size_t have = 0;
    for (;;) {
        ssize_t k = read(0, in + have, sizeof in - have);
        if (k <= 0) return 0;
        have += k;
        char *line = in, *end;
        for (; (end = memchr(line, '\n', in + have - line)); line = end + 1) answer(line, end - line);
        have -= line - in;
        memmove(in, line, have);
    }
}
