#ifndef CLIVEPAGE_H
#define CLIVEPAGE_H

#include <stddef.h>

// A file of the live page, as part of the program.
typedef struct {
    // What a browser asks for.
    const char *path;
    const char *type;
    const unsigned char *bytes;
    size_t count;
} LivePagePart;

// NULL behind the last one.
const LivePagePart *live_page_part(size_t index);

#endif
