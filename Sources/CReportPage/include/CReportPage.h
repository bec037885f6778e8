/// The files of the report page, as they are in Sources/Pages.
#pragma once
#include <stddef.h>

typedef struct {
    /// Name of the file.
    const char *path;
    const unsigned char *bytes;
    size_t count;
} ReportPagePart;

/// The parts in the order in which they belong together; NULL past the end.
const ReportPagePart *report_page_part(size_t index);
