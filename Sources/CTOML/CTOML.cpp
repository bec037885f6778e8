#include "CTOML.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Together with MAX_KEY_DOTS this bounds the depth of the tree, and so the stack that building and freeing it takes.
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

struct ctoml_document {
    toml::table root;
    std::vector<ctoml_node> nodes;
    bool failed = false;
    std::string error;
    uint32_t line = 0, column = 0;
};

namespace {

constexpr int MAX_KEY_DOTS = 16;

void fail(ctoml_document &document, std::string_view message, uint32_t line, uint32_t column) {
    document.failed = true;
    document.error = message;
    document.line = line;
    document.column = column;
}

// toml++ limits nested values but not the segments of a dotted key: a line of a million dots would nest a million
// tables, and their destructors would run out of stack. Strings and comments may hold as many dots as they like.
bool keys_are_shallow(std::string_view text, ctoml_document &document) {
    uint32_t line = 1, column = 0;
    int dots = 0;
    for (size_t i = 0; i < text.size(); i++) {
        const char c = text[i];
        if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) column++;
        if (c == '#') {
            const size_t end = text.find('\n', i);
            if (end == std::string_view::npos) return true;
            i = end;
            line++;
            column = 0;
            dots = 0;
        } else if (c == '"' || c == '\'') {
            const std::string_view triple = c == '"' ? "\"\"\"" : "'''";
            const bool multiline = text.substr(i, 3) == triple;
            i += multiline ? 3 : 1;
            column += multiline ? 3 : 1;
            for (; i < text.size(); i++, column++) {
                if (c == '"' && text[i] == '\\') {
                    i++;
                    column++;
                } else if (multiline && text.substr(i, 3) == triple) {
                    i += 2;
                    column += 2;
                    break;
                } else if (!multiline && (text[i] == c || text[i] == '\n')) {
                    break;
                }
                if (i < text.size() && text[i] == '\n') {
                    line++;
                    column = 0;
                }
            }
        } else if (c == '.') {
            if (++dots > MAX_KEY_DOTS) {
                fail(document, "a key has too many parts", line, column);
                return false;
            }
        } else if (c == '\n') {
            line++;
            column = 0;
            dots = 0;
        } else if (c == '=' || c == ',' || c == '[' || c == '{') {
            dots = 0;
        }
    }
    return true;
}

void add(ctoml_document &document, const toml::node &node, const toml::key *key, int32_t parent) {
    const auto index = static_cast<int32_t>(document.nodes.size());
    ctoml_node out;
    std::memset(&out, 0, sizeof out);
    out.parent = parent;
    if (key) {
        out.key = key->str().data();
        out.key_length = key->str().size();
        out.key_line = key->source().begin.line;
        out.key_column = key->source().begin.column;
    }
    out.line = node.source().begin.line;
    out.column = node.source().begin.column;
    switch (node.type()) {
        case toml::node_type::table: out.kind = CTOML_TABLE; break;
        case toml::node_type::array: out.kind = CTOML_ARRAY; break;
        case toml::node_type::string: {
            const std::string &text = **node.as_string();
            out.kind = CTOML_STRING;
            out.text = text.data();
            out.text_length = text.size();
            break;
        }
        case toml::node_type::integer:
            out.kind = CTOML_INTEGER;
            out.integer = **node.as_integer();
            break;
        case toml::node_type::floating_point:
            out.kind = CTOML_FLOAT;
            out.number = **node.as_floating_point();
            break;
        case toml::node_type::boolean:
            out.kind = CTOML_BOOLEAN;
            out.boolean = **node.as_boolean();
            break;
        default: out.kind = CTOML_DATETIME; break;
    }
    document.nodes.push_back(out);

    if (const toml::array *array = node.as_array()) {
        for (const toml::node &element : *array) add(document, element, nullptr, index);
    } else if (const toml::table *table = node.as_table()) {
        // toml++ keeps tables sorted by name; the written order is in the positions of the keys.
        std::vector<std::pair<const toml::key *, const toml::node *>> entries;
        for (auto &&[name, value] : *table) entries.emplace_back(&name, &value);
        std::stable_sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
            const auto &x = a.first->source().begin, &y = b.first->source().begin;
            return x.line != y.line ? x.line < y.line : x.column < y.column;
        });
        for (const auto &[name, value] : entries) add(document, *value, name, index);
    }
}

}  // namespace

extern "C" {

ctoml_document *ctoml_parse(const char *bytes, size_t length) {
    ctoml_document *document = nullptr;
    try {
        document = new ctoml_document;
        if (length > CTOML_MAX_BYTES) {
            fail(*document, "the file is larger than 1 MiB", 1, 1);
            return document;
        }
        const std::string_view text = length ? std::string_view(bytes, length) : std::string_view();
        if (!keys_are_shallow(text, *document)) return document;
        toml::parse_result result = toml::parse(text);
        if (!result) {
            const toml::parse_error &error = result.error();
            fail(*document, error.description(), error.source().begin.line, error.source().begin.column);
            return document;
        }
        document->root = std::move(result).table();
        add(*document, document->root, nullptr, -1);
        return document;
    } catch (...) {
        // Only memory can be short here; TOML_EXCEPTIONS is off.
        delete document;
        return nullptr;
    }
}

void ctoml_free(ctoml_document *document) { delete document; }

const char *ctoml_error(const ctoml_document *document) {
    return document->failed ? document->error.c_str() : nullptr;
}
uint32_t ctoml_error_line(const ctoml_document *document) { return document->line; }
uint32_t ctoml_error_column(const ctoml_document *document) { return document->column; }

size_t ctoml_count(const ctoml_document *document) { return document->nodes.size(); }
const ctoml_node *ctoml_nodes(const ctoml_document *document) { return document->nodes.data(); }

}  // extern "C"
