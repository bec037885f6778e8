/* The least that the job of waypost costs in C: RMC sentences → a queue in SQLite → requests of JSON, deleted when accepted.
 *
 *     floor LOG QUEUE URL WINDOW BATCH [--gzip] [--rate FIXES-PER-SECOND]
 *
 * WINDOW fixes are a commit (write-ahead log, flushed), BATCH rows a request; what a server has accepted is deleted with the next
 * commit. No motion, evidence, retry, retention or settings: who is near this has nothing left to save.
 */

#include <curl/curl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

struct fix {
    long long time_ms;
    int latitude_e7, longitude_e7, speed_cms, course_ddeg;
};

static void fail(const char *what, const char *why) {
    fprintf(stderr, "floor: %s: %s\n", what, why);
    exit(1);
}

/* Sentences */

static int hexadecimal(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

/* Whether the line is "$…*hh" with a checksum that is right. */
static int is_whole(const char *line, size_t length) {
    if (length < 4 || line[0] != '$' || line[length - 3] != '*') return 0;
    unsigned char sum = 0;
    for (size_t index = 1; index < length - 3; index++) sum ^= (unsigned char)line[index];
    return hexadecimal(line[length - 2]) == sum >> 4 && hexadecimal(line[length - 1]) == (sum & 15);
}

/* Reads digits with at most `decimals` after the point as a whole number of that many decimals. */
static long long scaled(const char *text, int decimals) {
    long long value = 0;
    int behind = 0, after = 0;
    for (; *text && *text != ',' && *text != '*'; text++) {
        if (*text == '.') {
            behind = 1;
        } else if (after < decimals) {
            value = value * 10 + (*text - '0');
            after += behind;
        }
    }
    for (; after < decimals; after++) value *= 10;
    return value;
}

/* ddmm.mmmmm in units of 1e-7 degrees. */
static int angle(const char *text, const char *hemisphere) {
    long long all = scaled(text, 6), degrees = all / 100000000, minutes = all % 100000000;
    int value = (int)(degrees * 10000000 + (minutes * 10 + 30) / 60);
    return *hemisphere == 'S' || *hemisphere == 'W' ? -value : value;
}

/* Days from 1970 to a date of the years 2000 to 2099. */
static int days(int day, int month, int year) {
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    return 10957 + year * 365 + (year + 3) / 4 + before[(month - 1) % 12] + (month > 2 && year % 4 == 0) + day - 1;
}

static int parse(const char *line, size_t length, struct fix *fix) {
    const char *fields[12] = {line};
    int count = 1;
    if (!is_whole(line, length) || memcmp(line + 3, "RMC,", 4) != 0) return 0;
    for (const char *at = line; count < 12 && (at = memchr(at, ',', length - (size_t)(at - line))); count++) fields[count] = ++at;
    if (count < 10 || *fields[2] != 'A') return 0;
    long long clock = scaled(fields[1], 3), date = scaled(fields[9], 0);
    long long seconds = clock / 1000;
    fix->time_ms = days((int)(date / 10000), (int)(date / 100 % 100), (int)(date % 100)) * 86400000LL
        + (seconds / 10000 * 3600 + seconds / 100 % 100 * 60 + seconds % 100) * 1000 + clock % 1000;
    fix->latitude_e7 = angle(fields[3], fields[4]);
    fix->longitude_e7 = angle(fields[5], fields[6]);
    fix->speed_cms = (int)(scaled(fields[7], 3) * 514444 / 10000000);
    fix->course_ddeg = (int)scaled(fields[8], 1);
    return 1;
}

/* The queue */

static sqlite3 *queue;
static sqlite3_stmt *begin, *commit, *insert, *oldest, *erase;

static void execute(const char *text) {
    if (sqlite3_exec(queue, text, NULL, NULL, NULL) != SQLITE_OK) fail(text, sqlite3_errmsg(queue));
}

static sqlite3_stmt *prepared(const char *text) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(queue, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        fail(text, sqlite3_errmsg(queue));
    return statement;
}

static void step(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) fail("a statement", sqlite3_errmsg(queue));
    sqlite3_reset(statement);
}

static void open_queue(const char *path) {
    if (sqlite3_open(path, &queue) != SQLITE_OK) fail(path, sqlite3_errmsg(queue));
    execute("PRAGMA page_size = 512");
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    execute("PRAGMA locking_mode = EXCLUSIVE");
    execute("CREATE TABLE IF NOT EXISTS fix (id INTEGER PRIMARY KEY, t INTEGER, lat INTEGER, lon INTEGER, v INTEGER, c INTEGER)");
    /* As after weeks: the log has its size, and is written from its beginning again and again. */
    int keeps = 1;
    sqlite3_file_control(queue, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps);
    begin = prepared("BEGIN");
    commit = prepared("COMMIT");
    insert = prepared("INSERT INTO fix VALUES (?, ?, ?, ?, ?, ?)");
    oldest = prepared("SELECT id, t, lat, lon, v, c FROM fix WHERE id > ? ORDER BY id LIMIT ?");
    erase = prepared("DELETE FROM fix WHERE id <= ?");
}

static void store(long long id, const struct fix *fix) {
    sqlite3_bind_int64(insert, 1, id);
    sqlite3_bind_int64(insert, 2, fix->time_ms);
    sqlite3_bind_int(insert, 3, fix->latitude_e7);
    sqlite3_bind_int(insert, 4, fix->longitude_e7);
    sqlite3_bind_int(insert, 5, fix->speed_cms);
    sqlite3_bind_int(insert, 6, fix->course_ddeg);
    step(insert);
}

/* Requests */

static CURL *client;
static char *body;
static size_t capacity;
static unsigned char *packed;
static z_stream compressor;
static int compresses;

static size_t ignore(char *data, size_t size, size_t count, void *context) {
    (void)data;
    (void)context;
    return size * count;
}

static void open_client(const char *url, int batch) {
    capacity = (size_t)batch * 256 + 64;
    body = malloc(capacity);
    packed = malloc(capacity + 1024);
    client = curl_easy_init();
    struct curl_slist *heads = curl_slist_append(NULL, "Content-Type: application/json");
    if (compresses) {
        heads = curl_slist_append(heads, "Content-Encoding: gzip");
        if (deflateInit2(&compressor, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK) fail("zlib", "no memory");
    }
    if (!client || !body || !packed || !heads) fail("start", "no memory");
    curl_easy_setopt(client, CURLOPT_URL, url);
    curl_easy_setopt(client, CURLOPT_HTTPHEADER, heads);
    curl_easy_setopt(client, CURLOPT_WRITEFUNCTION, ignore);
}

static void post(size_t length) {
    char *content = body;
    if (compresses) {
        deflateReset(&compressor);
        compressor.next_in = (unsigned char *)body;
        compressor.avail_in = (unsigned)length;
        compressor.next_out = packed;
        compressor.avail_out = (unsigned)capacity + 1024;
        if (deflate(&compressor, Z_FINISH) != Z_STREAM_END) fail("zlib", "too long");
        length = compressor.total_out;
        content = (char *)packed;
    }
    long status = 0;
    curl_easy_setopt(client, CURLOPT_POSTFIELDS, content);
    curl_easy_setopt(client, CURLOPT_POSTFIELDSIZE, (long)length);
    CURLcode code = curl_easy_perform(client);
    if (code != CURLE_OK) fail("request", curl_easy_strerror(code));
    curl_easy_getinfo(client, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) fail("request", "refused");
}

static char *append(char *at, const char *text) {
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

/* A number that has `decimals` digits after the point. */
static char *append_scaled(char *at, long long value, int decimals) {
    char digits[24];
    int count = 0;
    if (value < 0) *at++ = '-', value = -value;
    for (; value || count <= decimals; value /= 10) digits[count++] = (char)('0' + value % 10);
    while (count) {
        if (count == decimals) *at++ = '.';
        *at++ = digits[--count];
    }
    return at;
}

/* Sends rows after this id, at most `batch`. Returns the last id that was sent. */
static long long send_after(long long id, int batch) {
    char *at = append(body, "{\"locations\":[");
    const char *between = "{";
    sqlite3_bind_int64(oldest, 1, id);
    sqlite3_bind_int(oldest, 2, batch);
    while (sqlite3_step(oldest) == SQLITE_ROW) {
        id = sqlite3_column_int64(oldest, 0);
        at = append_scaled(append(append(at, between), "\"timeStamp\":"), sqlite3_column_int64(oldest, 1), 3);
        at = append_scaled(append(at, ",\"latitude\":"), sqlite3_column_int(oldest, 2), 7);
        at = append_scaled(append(at, ",\"longitude\":"), sqlite3_column_int(oldest, 3), 7);
        at = append_scaled(append(at, ",\"speed\":"), sqlite3_column_int(oldest, 4), 2);
        at = append_scaled(append(at, ",\"bearing\":"), sqlite3_column_int(oldest, 5), 1);
        between = "},{";
    }
    sqlite3_reset(oldest);
    at = append(at, "}]}");
    post((size_t)(at - body));
    return id;
}

static void wait_until(const struct timespec *start, double seconds) {
    struct timespec due = *start;
    due.tv_sec += (time_t)seconds;
    due.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (due.tv_nsec >= 1000000000) due.tv_sec++, due.tv_nsec -= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

int main(int count, char **words) {
    if (count < 6) fail("usage", "floor LOG QUEUE URL WINDOW BATCH [--gzip] [--rate FIXES-PER-SECOND]");
    int window = atoi(words[4]), batch = atoi(words[5]), held = 0;
    double rate = 0;
    for (int index = 6; index < count; index++) {
        if (strcmp(words[index], "--gzip") == 0) compresses = 1;
        if (strcmp(words[index], "--rate") == 0 && index + 1 < count) rate = atof(words[index + 1]);
    }
    FILE *log = fopen(words[1], "r");
    if (!log) fail(words[1], "cannot be read");
    open_queue(words[2]);
    open_client(words[3], batch);

    char line[128];
    long long stored = 0, sent = 0, erased = 0;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int more = 1; more || stored > erased;) {
        struct fix fix;
        more = more && fgets(line, sizeof line, log) != NULL;
        if (more) {
            if (!parse(line, strcspn(line, "\r\n"), &fix)) continue;
            if (rate > 0) wait_until(&start, (double)stored / rate);
            if (held++ == 0) step(begin);
            store(++stored, &fix);
        }
        if (held == window || !more) {
            if (held == 0) step(begin);
            if (sent > erased) {
                sqlite3_bind_int64(erase, 1, sent);
                step(erase);
                erased = sent;
            }
            step(commit);
            held = 0;
            while (stored - sent >= (more ? batch : 1)) sent = send_after(sent, batch);
        }
    }
    sqlite3_close_v2(queue);
    return 0;
}
