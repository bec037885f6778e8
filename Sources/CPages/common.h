// The files that all pages have. Each page's own file includes it once.
#pragma once
#include "CPages.h"

// Standard C since C23, and known to every clang that builds Swift 6.2.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char common_common_css[] = {
#embed "../Pages/common/common.css"
};
static const unsigned char common_map_css[] = {
#embed "../Pages/common/map.css"
};
static const unsigned char common_projection_js[] = {
#embed "../Pages/common/projection.js"
};
static const unsigned char common_canvas_js[] = {
#embed "../Pages/common/canvas.js"
};
static const unsigned char common_gestures_js[] = {
#embed "../Pages/common/gestures.js"
};
static const unsigned char common_layers_js[] = {
#embed "../Pages/common/layers.js"
};
static const unsigned char common_tiles_js[] = {
#embed "../Pages/common/tiles.js"
};
static const unsigned char common_map_js[] = {
#embed "../Pages/common/map.js"
};
static const unsigned char common_words_js[] = {
#embed "../Pages/common/words.js"
};
