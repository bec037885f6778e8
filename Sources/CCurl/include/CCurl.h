#ifndef WAYPOST_CCURL_H
#define WAYPOST_CCURL_H

#include <curl/curl.h>

#endif
