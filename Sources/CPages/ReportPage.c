#include "common.h"

static const unsigned char report_report_html[] = {
#embed "../Pages/report/report.html"
};
static const unsigned char report_report_css[] = {
#embed "../Pages/report/report.css"
};
static const unsigned char report_boot_js[] = {
#embed "../Pages/report/boot.js"
};
static const unsigned char report_dom_js[] = {
#embed "../Pages/report/dom.js"
};
static const unsigned char report_words_js[] = {
#embed "../Pages/report/words.js"
};
static const unsigned char report_data_js[] = {
#embed "../Pages/report/data.js"
};
static const unsigned char report_state_js[] = {
#embed "../Pages/report/state.js"
};
static const unsigned char report_timescale_js[] = {
#embed "../Pages/report/timescale.js"
};
static const unsigned char report_why_js[] = {
#embed "../Pages/report/why.js"
};
static const unsigned char report_tip_js[] = {
#embed "../Pages/report/tip.js"
};
static const unsigned char report_track_js[] = {
#embed "../Pages/report/track.js"
};
static const unsigned char report_charts_js[] = {
#embed "../Pages/report/charts.js"
};
static const unsigned char report_frame_js[] = {
#embed "../Pages/report/frame.js"
};
static const unsigned char report_timelinedrawing_js[] = {
#embed "../Pages/report/timelinedrawing.js"
};
static const unsigned char report_timeline_js[] = {
#embed "../Pages/report/timeline.js"
};
static const unsigned char report_navigation_js[] = {
#embed "../Pages/report/navigation.js"
};
static const unsigned char report_player_js[] = {
#embed "../Pages/report/player.js"
};
static const unsigned char report_readout_js[] = {
#embed "../Pages/report/readout.js"
};
static const unsigned char report_journey_js[] = {
#embed "../Pages/report/journey.js"
};
static const unsigned char report_whatif_js[] = {
#embed "../Pages/report/whatif.js"
};
static const unsigned char report_summary_js[] = {
#embed "../Pages/report/summary.js"
};
static const unsigned char report_gpx_js[] = {
#embed "../Pages/report/gpx.js"
};
static const unsigned char report_controls_js[] = {
#embed "../Pages/report/controls.js"
};
static const unsigned char report_paper_js[] = {
#embed "../Pages/report/paper.js"
};
static const unsigned char report_main_js[] = {
#embed "../Pages/report/main.js"
};

// A module comes after those that it imports.
static const PagePart parts[] = {
    PAGE_PART("report/report.html", report_report_html),
    PAGE_PART("common/common.css", common_common_css),
    PAGE_PART("common/map.css", common_map_css),
    PAGE_PART("report/report.css", report_report_css),
    PAGE_PART("report/boot.js", report_boot_js),
    PAGE_PART("common/projection.js", common_projection_js),
    PAGE_PART("common/canvas.js", common_canvas_js),
    PAGE_PART("common/gestures.js", common_gestures_js),
    PAGE_PART("common/layers.js", common_layers_js),
    PAGE_PART("common/tiles.js", common_tiles_js),
    PAGE_PART("common/map.js", common_map_js),
    PAGE_PART("common/words.js", common_words_js),
    PAGE_PART("report/dom.js", report_dom_js),
    PAGE_PART("report/words.js", report_words_js),
    PAGE_PART("report/data.js", report_data_js),
    PAGE_PART("report/state.js", report_state_js),
    PAGE_PART("report/timescale.js", report_timescale_js),
    PAGE_PART("report/why.js", report_why_js),
    PAGE_PART("report/tip.js", report_tip_js),
    PAGE_PART("report/track.js", report_track_js),
    PAGE_PART("report/charts.js", report_charts_js),
    PAGE_PART("report/frame.js", report_frame_js),
    PAGE_PART("report/timelinedrawing.js", report_timelinedrawing_js),
    PAGE_PART("report/timeline.js", report_timeline_js),
    PAGE_PART("report/navigation.js", report_navigation_js),
    PAGE_PART("report/player.js", report_player_js),
    PAGE_PART("report/readout.js", report_readout_js),
    PAGE_PART("report/journey.js", report_journey_js),
    PAGE_PART("report/whatif.js", report_whatif_js),
    PAGE_PART("report/summary.js", report_summary_js),
    PAGE_PART("report/gpx.js", report_gpx_js),
    PAGE_PART("report/controls.js", report_controls_js),
    PAGE_PART("report/paper.js", report_paper_js),
    PAGE_PART("report/main.js", report_main_js),
};

const PagePart *report_page_part(size_t index) {
    return index < sizeof parts / sizeof *parts ? &parts[index] : NULL;
}
