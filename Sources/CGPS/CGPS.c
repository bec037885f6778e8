#include "CGPS.h"

#include <dlfcn.h>
#include <stddef.h>

_Static_assert(sizeof(struct gps_data_t) <= WAYPOST_GPS_ROOM / 4, "WAYPOST_GPS_ROOM");
#if GPSD_API_MAJOR_VERSION <= 14
_Static_assert(offsetof(struct gps_data_t, gps_fd) == WAYPOST_GPS_DESCRIPTOR_28, "WAYPOST_GPS_DESCRIPTOR_28");
#elif GPSD_API_MAJOR_VERSION >= 16
_Static_assert(offsetof(struct gps_data_t, gps_fd) == WAYPOST_GPS_DESCRIPTOR_32, "WAYPOST_GPS_DESCRIPTOR_32");
#endif

bool waypost_gps_find(void *handle, struct waypost_libgps *functions) {
    functions->open = (__typeof__(functions->open))dlsym(handle, "gps_open");
    functions->stream = (__typeof__(functions->stream))dlsym(handle, "gps_stream");
    functions->close = (__typeof__(functions->close))dlsym(handle, "gps_close");
    functions->describe = (__typeof__(functions->describe))dlsym(handle, "gps_errstr");
    return functions->open && functions->stream && functions->close && functions->describe;
}

int waypost_gps_open(const struct waypost_libgps *functions, const char *host, const char *port, void *session) {
    return functions->open(host, port, session);
}

int waypost_gps_watch(const struct waypost_libgps *functions, void *session, const char *device) {
    // The last parameter is const in some releases and not in others; none writes to it.
    return functions->stream(session, WATCH_ENABLE | WATCH_JSON | (device ? WATCH_DEVICE : 0), (void *)device);
}

void waypost_gps_close(const struct waypost_libgps *functions, void *session) { functions->close(session); }
