/* What a device without waypost could do: publishes the lines of a file with libmosquitto, QoS 1, at most WINDOW unconfirmed, and
 * prints the seconds of processor and of wall. With a queue it takes them from a table of SQLite, a batch at a time, and deletes what
 * is confirmed.
 *   publisher PORT TOPIC FILE WINDOW [QUEUE BATCH]
 */
#include <mosquitto.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static struct mosquitto *client;
static const char *topic;
static int window, is_connected, in_flight, confirmed;
static char **lines;
static int line_count, line_next;
static sqlite3 *queue;
static int batch, batch_in_flight;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "publisher: %s: %s\n", what, why);
    exit(1);
}

static void query(const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(queue, sql, NULL, NULL, &why) != SQLITE_OK)
        die(sql, why);
}

static void read_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        die(path, "cannot be read");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int capacity = 0;
    while ((length = getline(&line, &room, file)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        if (line_count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            lines = realloc(lines, capacity * sizeof *lines);
        }
        if (!lines || !(lines[line_count++] = strdup(line)))
            die(path, "no memory");
    }
    free(line);
    fclose(file);
}

/* All lines into the table, once; they are not measured. */
static void fill_queue(const char *path)
{
    if (sqlite3_open(path, &queue) != SQLITE_OK)
        die(path, sqlite3_errmsg(queue));
    query("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
          "CREATE TABLE rows (seq INTEGER PRIMARY KEY, payload TEXT); BEGIN");
    sqlite3_stmt *insert;
    sqlite3_prepare_v2(queue, "INSERT INTO rows (payload) VALUES (?)", -1, &insert, NULL);
    for (int i = 0; i < line_count; i++) {
        sqlite3_bind_text(insert, 1, lines[i], -1, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE)
            die(path, sqlite3_errmsg(queue));
        sqlite3_reset(insert);
        free(lines[i]);
    }
    sqlite3_finalize(insert);
    query("COMMIT");
    line_count = 0;
}

/* The next batch, when the one before is confirmed and deleted. */
static void next_batch(void)
{
    for (int i = 0; i < line_count; i++)
        free(lines[i]);
    line_count = line_next = 0;
    if (batch_in_flight) {
        char sql[99];
        snprintf(sql, sizeof sql, "DELETE FROM rows WHERE seq IN (SELECT seq FROM rows ORDER BY seq LIMIT %d)", batch_in_flight);
        query(sql);
    }
    sqlite3_stmt *select;
    sqlite3_prepare_v2(queue, "SELECT payload FROM rows ORDER BY seq LIMIT ?", -1, &select, NULL);
    sqlite3_bind_int(select, 1, batch);
    while (sqlite3_step(select) == SQLITE_ROW)
        lines[line_count++] = strdup((const char *)sqlite3_column_text(select, 0));
    sqlite3_finalize(select);
    batch_in_flight = line_count;
}

static void publish(void)
{
    if (queue && line_next == line_count && in_flight == 0)
        next_batch();
    while (is_connected && in_flight < window && line_next < line_count) {
        const char *line = lines[line_next++];
        int code = mosquitto_publish_v5(client, NULL, topic, strlen(line), line, 1, false, NULL);
        if (code != MOSQ_ERR_SUCCESS)
            die("publish", mosquitto_strerror(code));
        in_flight++;
    }
}

static void on_connect(struct mosquitto *m, void *u, int reason, int flags, const mosquitto_property *p)
{
    (void)m, (void)u, (void)flags, (void)p;
    if (reason)
        die("connect", mosquitto_reason_string(reason));
    is_connected = 1;
    publish();
}

static void on_publish(struct mosquitto *m, void *u, int id, int reason, const mosquitto_property *p)
{
    (void)m, (void)u, (void)id, (void)p;
    if (reason)
        die("PUBACK", mosquitto_reason_string(reason));
    in_flight--;
    confirmed++;
    publish();
}

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 7)
        die("publisher", "PORT TOPIC FILE WINDOW [QUEUE BATCH]");
    topic = argv[2];
    window = atoi(argv[4]);
    read_lines(argv[3]);
    int count = line_count;
    if (argc == 7) {
        batch = atoi(argv[6]);
        fill_queue(argv[5]);
    }
    mosquitto_lib_init();
    client = mosquitto_new("publisher", true, NULL);
    if (!client)
        die("publisher", "no memory");
    mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, window);
    mosquitto_connect_v5_callback_set(client, on_connect);
    mosquitto_publish_v5_callback_set(client, on_publish);
    double began = seconds(), before = processor_seconds();
    int code = mosquitto_connect(client, "127.0.0.1", atoi(argv[1]), 60);
    while (code == MOSQ_ERR_SUCCESS && confirmed < count)
        code = mosquitto_loop(client, 1000, 1);
    if (code != MOSQ_ERR_SUCCESS)
        die("connection", mosquitto_strerror(code));
    if (queue)
        next_batch();
    printf("%.3f %.3f\n", processor_seconds() - before, seconds() - began);
    mosquitto_disconnect(client);
    mosquitto_destroy(client);
    return 0;
}
