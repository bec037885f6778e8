#ifndef WAYPOST_CGPS_H
#define WAYPOST_CGPS_H

// libgps is loaded when a receiver is behind gpsd, and not linked: one binary works with the libgps of several releases.
#include <gps.h>
#include <stdbool.h>

// The struct that libgps fills is laid out anew by each release. What is used of it is its size, for which there is room,
// and where the descriptor of the connection lies in it, in bytes, on every machine with 64 bits. CGPS.c holds both against
// the header at hand.
#define WAYPOST_GPS_ROOM 262144
/// libgps 28 to 30 (gpsd 3.22 to 3.25).
#define WAYPOST_GPS_DESCRIPTOR_28 24
/// libgps 32 (gpsd 3.27).
#define WAYPOST_GPS_DESCRIPTOR_32 32

/// The functions that are used, with the types of the header.
struct waypost_libgps {
    __typeof__(&gps_open) open;
    __typeof__(&gps_stream) stream;
    __typeof__(&gps_close) close;
    __typeof__(&gps_errstr) describe;
};

/// Finds them in what dlopen gave. false: one is not there.
bool waypost_gps_find(void *handle, struct waypost_libgps *functions);
/// Connects. `session` is WAYPOST_GPS_ROOM bytes of zero, which stay where they are.
int waypost_gps_open(const struct waypost_libgps *functions, const char *host, const char *port, void *session);
/// Asks for the reports in JSON of all devices (NULL), or of one.
int waypost_gps_watch(const struct waypost_libgps *functions, void *session, const char *device);
void waypost_gps_close(const struct waypost_libgps *functions, void *session);

#endif
