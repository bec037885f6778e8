#include "CBus.h"

#include <dlfcn.h>
#include <time.h>

// As in <systemd/sd-bus.h>, whose package is not needed to build waypost.
typedef struct waypost_bus Bus;
typedef struct waypost_bus_message Message;

static struct {
    int (*open_system)(Bus **);
    void (*close)(Bus *);
    Bus *(*unref)(Bus *);
    int (*get_fd)(Bus *);
    int (*get_events)(Bus *);
    int (*get_timeout)(Bus *, uint64_t *);
    int (*process)(Bus *, Message **);
    int (*add_match_async)(Bus *, void **, const char *, waypost_bus_handler, waypost_bus_handler, void *);
    int (*call_async)(Bus *, void **, Message *, waypost_bus_handler, void *, uint64_t);
    int (*send)(Bus *, Message *, uint64_t *);
    int (*message_new_method_call)(Bus *, Message **, const char *, const char *, const char *, const char *);
    Message *(*message_unref)(Message *);
    int (*message_set_auto_start)(Message *, int);
    int (*message_append)(Message *, const char *, ...);
    int (*message_is_method_error)(Message *, const char *);
    const char *(*message_get_path)(Message *);
    const char *(*message_get_sender)(Message *);
    const void *(*message_get_error)(Message *);
    int (*message_peek_type)(Message *, char *, const char **);
    int (*message_enter_container)(Message *, char, const char *);
    int (*message_exit_container)(Message *);
    int (*message_skip)(Message *, const char *);
    int (*message_read_basic)(Message *, char, void *);
    int (*message_read_array)(Message *, char, const void **, size_t *);
} sd;

/// sd_bus_error of the library: its name comes first.
struct error {
    const char *name;
};

static const uint64_t timeout_us = 20 * 1000 * 1000;

bool waypost_bus_load(void) {
    static enum { untried, present, absent } state;
    if (state != untried) return state == present;
    state = absent;
    void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
#define FIND(field, name) \
    if (!(sd.field = (__typeof__(sd.field))dlsym(library, name))) return false
    FIND(open_system, "sd_bus_open_system");
    FIND(close, "sd_bus_close");
    FIND(unref, "sd_bus_unref");
    FIND(get_fd, "sd_bus_get_fd");
    FIND(get_events, "sd_bus_get_events");
    FIND(get_timeout, "sd_bus_get_timeout");
    FIND(process, "sd_bus_process");
    FIND(add_match_async, "sd_bus_add_match_async");
    FIND(call_async, "sd_bus_call_async");
    FIND(send, "sd_bus_send");
    FIND(message_new_method_call, "sd_bus_message_new_method_call");
    FIND(message_unref, "sd_bus_message_unref");
    FIND(message_set_auto_start, "sd_bus_message_set_auto_start");
    FIND(message_append, "sd_bus_message_append");
    FIND(message_is_method_error, "sd_bus_message_is_method_error");
    FIND(message_get_path, "sd_bus_message_get_path");
    FIND(message_get_sender, "sd_bus_message_get_sender");
    FIND(message_get_error, "sd_bus_message_get_error");
    FIND(message_peek_type, "sd_bus_message_peek_type");
    FIND(message_enter_container, "sd_bus_message_enter_container");
    FIND(message_exit_container, "sd_bus_message_exit_container");
    FIND(message_skip, "sd_bus_message_skip");
    FIND(message_read_basic, "sd_bus_message_read_basic");
    FIND(message_read_array, "sd_bus_message_read_array");
#undef FIND
    state = present;
    return true;
}

int waypost_bus_open(Bus **bus) { return sd.open_system(bus); }

void waypost_bus_close(Bus *bus) {
    sd.close(bus);
    sd.unref(bus);
}

int waypost_bus_descriptor(Bus *bus) { return sd.get_fd(bus); }

int waypost_bus_events(Bus *bus) { return sd.get_events(bus); }

uint64_t waypost_bus_timeout(Bus *bus) {
    uint64_t until = UINT64_MAX;
    struct timespec now;
    if (sd.get_timeout(bus, &until) < 0 || until == UINT64_MAX) return UINT64_MAX;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    return until > now_us ? until - now_us : 0;
}

int waypost_bus_process(Bus *bus) { return sd.process(bus, NULL); }

/// Sends a call whose arguments are complete, and lets go of it.
static int finish(Bus *bus, Message *call, int result, waypost_bus_handler handler, void *context) {
    // A service that somebody has stopped stays so.
    if (result >= 0) result = sd.message_set_auto_start(call, 0);
    if (result >= 0) result = handler ? sd.call_async(bus, NULL, call, handler, context, timeout_us) : sd.send(bus, call, NULL);
    sd.message_unref(call);
    return result;
}

int waypost_bus_call(
    Bus *bus, const char *name, const char *path, const char *interface, const char *method, const char *first,
    const char *second, waypost_bus_handler handler, void *context) {
    Message *call = NULL;
    int result = sd.message_new_method_call(bus, &call, name, path, interface, method);
    if (result < 0) return result;
    if (first) result = sd.message_append(call, "s", first);
    if (first && second && result >= 0) result = sd.message_append(call, "s", second);
    return finish(bus, call, result, handler, context);
}

int waypost_bus_filter_discovery(
    Bus *bus, const char *name, const char *path, waypost_bus_handler handler, void *context) {
    Message *call = NULL;
    int result = sd.message_new_method_call(bus, &call, name, path, "org.bluez.Adapter1", "SetDiscoveryFilter");
    if (result < 0) return result;
    result = sd.message_append(call, "a{sv}", 2, "Transport", "s", "le", "DuplicateData", "b", 1);
    return finish(bus, call, result, handler, context);
}

int waypost_bus_match(Bus *bus, const char *rule, waypost_bus_handler handler, void *context) {
    return sd.add_match_async(bus, NULL, rule, handler, NULL, context);
}

bool waypost_bus_is_error(Message *message) { return sd.message_is_method_error(message, NULL) > 0; }

const char *waypost_bus_error_name(Message *message) {
    const struct error *error = sd.message_get_error(message);
    return error ? error->name : NULL;
}

const char *waypost_bus_path(Message *message) { return sd.message_get_path(message); }

const char *waypost_bus_sender(Message *message) { return sd.message_get_sender(message); }

int waypost_bus_peek(Message *message, char *type, const char **contents) { return sd.message_peek_type(message, type, contents); }

int waypost_bus_enter(Message *message, char type, const char *contents) {
    return sd.message_enter_container(message, type, contents);
}

int waypost_bus_exit(Message *message) { return sd.message_exit_container(message); }

int waypost_bus_skip(Message *message, const char *types) { return sd.message_skip(message, types); }

int waypost_bus_read(Message *message, char type, void *value) { return sd.message_read_basic(message, type, value); }

int waypost_bus_read_bytes(Message *message, const void **bytes, size_t *count) {
    return sd.message_read_array(message, 'y', bytes, count);
}
