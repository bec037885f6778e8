#ifndef WAYPOST_CTOML_H
#define WAYPOST_CTOML_H

#endif
