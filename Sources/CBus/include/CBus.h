#ifndef WAYPOST_CBUS_H
#define WAYPOST_CBUS_H

// D-Bus through sd-bus of libsystemd, which is loaded when something on the bus is configured, and not linked: most devices never
// need it. The functions have the names and meanings of sd-bus(3); those with variable arguments are here for what is called.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct waypost_bus;
struct waypost_bus_message;
/// Handles an answer or a signal. 0, or a negative errno that is logged nowhere.
typedef int (*waypost_bus_handler)(struct waypost_bus_message *message, void *context, void *error);

/// Loads the library once; false when it, or one of its functions, is not there.
bool waypost_bus_load(void);

/// Connects to the bus of the system without waiting for it. 0, or a negative errno.
int waypost_bus_open(struct waypost_bus **bus);
/// Closes it without sending what waits.
void waypost_bus_close(struct waypost_bus *bus);
int waypost_bus_descriptor(struct waypost_bus *bus);
/// Events of poll(2) that it waits for; a negative errno.
int waypost_bus_events(struct waypost_bus *bus);
/// Microseconds from now until it wants to be called; 0 at once, UINT64_MAX never.
uint64_t waypost_bus_timeout(struct waypost_bus *bus);
/// Handles one message: above 0, nothing was there: 0, the connection is gone: below.
int waypost_bus_process(struct waypost_bus *bus);

/// Calls a method with up to two texts; `first` NULL = without arguments. `handler` NULL = no answer is wanted.
int waypost_bus_call(
    struct waypost_bus *bus, const char *name, const char *path, const char *interface, const char *method, const char *first,
    const char *second, waypost_bus_handler handler, void *context);
/// org.bluez.Adapter1.SetDiscoveryFilter: Low Energy, and each advertisement, not only those that differ.
int waypost_bus_filter_discovery(
    struct waypost_bus *bus, const char *name, const char *path, waypost_bus_handler handler, void *context);
/// Asks for the signals that fit a rule. The handler also gets signals that a client has addressed to this connection and that
/// fit it but for the sender: sd-bus does not know who owns a name.
int waypost_bus_match(struct waypost_bus *bus, const char *rule, waypost_bus_handler handler, void *context);

/// Whether it is an error instead of an answer.
bool waypost_bus_is_error(struct waypost_bus_message *message);
/// The name of the error; NULL when it is none.
const char *waypost_bus_error_name(struct waypost_bus_message *message);
const char *waypost_bus_path(struct waypost_bus_message *message);
/// The connection that has sent it, `:1.7`, or `org.freedesktop.DBus` for the bus itself; the bus fills it in. NULL when unknown.
const char *waypost_bus_sender(struct waypost_bus_message *message);

// Reading goes forward. Each gives above 0, 0 at the end of the container, or a negative errno.

/// The type of what comes next, and of what is in it where that is a container.
int waypost_bus_peek(struct waypost_bus_message *message, char *type, const char **contents);
int waypost_bus_enter(struct waypost_bus_message *message, char type, const char *contents);
int waypost_bus_exit(struct waypost_bus_message *message);
int waypost_bus_skip(struct waypost_bus_message *message, const char *types);
int waypost_bus_read(struct waypost_bus_message *message, char type, void *value);
int waypost_bus_read_bytes(struct waypost_bus_message *message, const void **bytes, size_t *count);

#endif
