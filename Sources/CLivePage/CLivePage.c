#include "CLivePage.h"

// Every compiler that builds waypost has it, also in the older language that SwiftPM chooses.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char html[] = "text/html; charset=utf-8";
static const char css[] = "text/css; charset=utf-8";
static const char script[] = "text/javascript; charset=utf-8";

static const unsigned char index_html[] = {
#embed "../Pages/live/index.html"
};
static const unsigned char common_css[] = {
#embed "../Pages/common/common.css"
};
static const unsigned char map_css[] = {
#embed "../Pages/common/map.css"
};
static const unsigned char live_css[] = {
#embed "../Pages/live/live.css"
};
static const unsigned char projection_js[] = {
#embed "../Pages/common/projection.js"
};
static const unsigned char canvas_js[] = {
#embed "../Pages/common/canvas.js"
};
static const unsigned char gestures_js[] = {
#embed "../Pages/common/gestures.js"
};
static const unsigned char tiles_js[] = {
#embed "../Pages/common/tiles.js"
};
static const unsigned char layers_js[] = {
#embed "../Pages/common/layers.js"
};
static const unsigned char map_js[] = {
#embed "../Pages/common/map.js"
};
static const unsigned char words_js[] = {
#embed "../Pages/live/words.js"
};
static const unsigned char link_js[] = {
#embed "../Pages/live/link.js"
};
static const unsigned char arrivals_js[] = {
#embed "../Pages/live/arrivals.js"
};
static const unsigned char tracks_js[] = {
#embed "../Pages/live/tracks.js"
};
static const unsigned char tables_js[] = {
#embed "../Pages/live/tables.js"
};
static const unsigned char delays_js[] = {
#embed "../Pages/live/delays.js"
};
static const unsigned char main_js[] = {
#embed "../Pages/live/main.js"
};

static const LivePagePart parts[] = {
    {"/", html, index_html, sizeof index_html},
    {"/common/common.css", css, common_css, sizeof common_css},
    {"/common/map.css", css, map_css, sizeof map_css},
    {"/live/live.css", css, live_css, sizeof live_css},
    {"/common/projection.js", script, projection_js, sizeof projection_js},
    {"/common/canvas.js", script, canvas_js, sizeof canvas_js},
    {"/common/gestures.js", script, gestures_js, sizeof gestures_js},
    {"/common/tiles.js", script, tiles_js, sizeof tiles_js},
    {"/common/layers.js", script, layers_js, sizeof layers_js},
    {"/common/map.js", script, map_js, sizeof map_js},
    {"/live/words.js", script, words_js, sizeof words_js},
    {"/live/link.js", script, link_js, sizeof link_js},
    {"/live/arrivals.js", script, arrivals_js, sizeof arrivals_js},
    {"/live/tracks.js", script, tracks_js, sizeof tracks_js},
    {"/live/tables.js", script, tables_js, sizeof tables_js},
    {"/live/delays.js", script, delays_js, sizeof delays_js},
    {"/live/main.js", script, main_js, sizeof main_js},
};

const LivePagePart *live_page_part(size_t index) {
    return index < sizeof parts / sizeof *parts ? &parts[index] : NULL;
}
