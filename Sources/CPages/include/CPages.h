/// The files of our pages. A program has those of the pages that it asks for.
#pragma once
#include <stddef.h>

typedef struct {
    /// Below Sources/Pages.
    const char *path;
    const unsigned char *bytes;
    size_t count;
} PagePart;

#define PAGE_PART(path, bytes) {path, bytes, sizeof bytes}

/// The parts of the report in the order in which they belong together; NULL past the end.
const PagePart *report_page_part(size_t index);
/// The files of the live page; NULL past the end.
const PagePart *live_page_part(size_t index);
