// toml++ behind a C interface: a buffer goes in, a flat list of nodes with their positions comes out.
//
// Nothing here judges a value. Positions count from 1; columns count code points. No C++ exception crosses.
#ifndef WAYPOST_CTOML_H
#define WAYPOST_CTOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A larger buffer is refused without being parsed.
#define CTOML_MAX_BYTES (1u << 20)

enum {
    CTOML_TABLE = 1,
    CTOML_ARRAY = 2,
    CTOML_STRING = 3,
    CTOML_INTEGER = 4,
    CTOML_FLOAT = 5,
    CTOML_BOOLEAN = 6,
    CTOML_DATETIME = 7,
};

typedef struct {
    int32_t kind;
    /// Index of the table or array that holds this node; -1 for the root. Always less than the node's own index.
    int32_t parent;
    /// UTF-8 without terminator; NULL for the root and for elements of an array.
    const char *key;
    size_t key_length;
    /// 0 when there is no key.
    uint32_t key_line, key_column;
    /// Where the value begins; for a table its header or brace.
    uint32_t line, column;
    /// UTF-8 without terminator; the value of a string, else NULL.
    const char *text;
    size_t text_length;
    int64_t integer;
    double number;
    bool boolean;
} ctoml_node;

typedef struct ctoml_document ctoml_document;

/// Never fails but for want of memory, which gives NULL. Strings live as long as the document.
ctoml_document *ctoml_parse(const char *bytes, size_t length);
void ctoml_free(ctoml_document *document);

/// The syntax error, or NULL when the buffer is TOML. After an error there are no nodes.
const char *ctoml_error(const ctoml_document *document);
uint32_t ctoml_error_line(const ctoml_document *document);
uint32_t ctoml_error_column(const ctoml_document *document);

/// Node 0 is the root table. Children follow their parent, in the order in which they are written.
size_t ctoml_count(const ctoml_document *document);
const ctoml_node *ctoml_nodes(const ctoml_document *document);

#ifdef __cplusplus
}
#endif

#endif
