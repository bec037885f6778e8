#include "common.h"

static const unsigned char live_index_html[] = {
#embed "../Pages/live/index.html"
};
static const unsigned char live_live_css[] = {
#embed "../Pages/live/live.css"
};
static const unsigned char live_words_js[] = {
#embed "../Pages/live/words.js"
};
static const unsigned char live_link_js[] = {
#embed "../Pages/live/link.js"
};
static const unsigned char live_arrivals_js[] = {
#embed "../Pages/live/arrivals.js"
};
static const unsigned char live_tracks_js[] = {
#embed "../Pages/live/tracks.js"
};
static const unsigned char live_tables_js[] = {
#embed "../Pages/live/tables.js"
};
static const unsigned char live_remotes_js[] = {
#embed "../Pages/live/remotes.js"
};
static const unsigned char live_delays_js[] = {
#embed "../Pages/live/delays.js"
};
static const unsigned char live_main_js[] = {
#embed "../Pages/live/main.js"
};

static const PagePart parts[] = {
    PAGE_PART("live/index.html", live_index_html),
    PAGE_PART("common/common.css", common_common_css),
    PAGE_PART("common/map.css", common_map_css),
    PAGE_PART("live/live.css", live_live_css),
    PAGE_PART("common/projection.js", common_projection_js),
    PAGE_PART("common/canvas.js", common_canvas_js),
    PAGE_PART("common/gestures.js", common_gestures_js),
    PAGE_PART("common/tiles.js", common_tiles_js),
    PAGE_PART("common/layers.js", common_layers_js),
    PAGE_PART("common/map.js", common_map_js),
    PAGE_PART("common/words.js", common_words_js),
    PAGE_PART("live/words.js", live_words_js),
    PAGE_PART("live/link.js", live_link_js),
    PAGE_PART("live/arrivals.js", live_arrivals_js),
    PAGE_PART("live/tracks.js", live_tracks_js),
    PAGE_PART("live/tables.js", live_tables_js),
    PAGE_PART("live/remotes.js", live_remotes_js),
    PAGE_PART("live/delays.js", live_delays_js),
    PAGE_PART("live/main.js", live_main_js),
};

const PagePart *live_page_part(size_t index) {
    return index < sizeof parts / sizeof *parts ? &parts[index] : NULL;
}
