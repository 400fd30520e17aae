#include "sim/report/parts.h"

namespace trellis::sim {

const std::string_view report_style = R"css(
:root { --paper:#fff; --ink:#1b1f24; --faint:#6a737d; --line:#d8dee4; --panel:#f6f8fa; --busy:#3b76c4;
  --stalled:#d9822b; --idle:#aab2bb; --critical:#c4314b; --c0:#3b76c4; --c1:#d9822b; --c2:#2f9e63; --c3:#8a5bc7;
  --c4:#c4314b; --c5:#0f8b8d; }
@media (prefers-color-scheme: dark) { :root { --paper:#15181c; --ink:#e3e7eb; --faint:#929ba5; --line:#343b43;
  --panel:#1e2329; --busy:#6ba3ea; --stalled:#eda35a; --idle:#5b6570; --critical:#ff6b81; --c0:#6ba3ea; --c1:#eda35a;
  --c2:#5cc48c; --c3:#b490ea; --c4:#ff6b81; --c5:#4fc3c5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px 24px 48px; max-width: 1800px; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 20px; margin: 0 0 8px; } h2 { font-size: 16px; margin: 28px 0 8px; }
dl { display: flex; flex-wrap: wrap; gap: 8px 28px; margin: 0 0 14px; }
dt { color: var(--faint); font-size: 12px; } dd { margin: 0; font-size: 16px; font-variant-numeric: tabular-nums; }
.controls { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin-bottom: 6px; }
.controls .hint { color: var(--faint); font-size: 12px; margin-left: auto; }
button, input[type=search] { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line);
  border-radius: 5px; padding: 2px 10px; }
#scroll { position: relative; overflow-y: auto; overflow-x: hidden; border: 1px solid var(--line); border-radius: 6px;
  max-height: 70vh; }
#timeline { position: sticky; top: 0; left: 0; display: block; outline-offset: -2px; touch-action: none; }
#tip { position: fixed; z-index: 2; pointer-events: none; background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px; padding: 6px 10px; max-width: 460px; font-size: 13px; box-shadow: 0 2px 10px #0004; }
#tip b { overflow-wrap: anywhere; } #tip table td:first-child { color: var(--faint); padding-right: 12px; }
#legend { display: flex; flex-wrap: wrap; gap: 4px 16px; color: var(--faint); font-size: 12px; margin-top: 6px; }
#legend i { display: inline-block; width: 14px; height: 8px; margin-right: 5px; }
section { overflow-x: auto; }
table { border-collapse: collapse; } td, th { padding: 2px 10px 2px 0; text-align: left; }
#tracks th { color: var(--faint); font-weight: normal; border-bottom: 1px solid var(--line); }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.bar { min-width: 180px; } td.bar i { display: inline-block; height: 10px; vertical-align: middle; }
i.busy { background: var(--busy); } i.stalled { background: var(--stalled); } i.idle { background: var(--idle); }
#merged { color: var(--faint); }
svg { max-width: 760px; width: 100%; font-size: 11px; } svg text { fill: var(--faint); }
svg .grid { stroke: var(--line); } svg .roof { fill: none; stroke-width: 2; }
svg .c0 { stroke: var(--c0); } svg .c1 { stroke: var(--c1); } svg .c2 { stroke: var(--c2); }
svg .c3 { stroke: var(--c3); } svg .c4 { stroke: var(--c4); } svg .c5 { stroke: var(--c5); }
svg circle.c0 { fill: var(--c0); } svg circle.c1 { fill: var(--c1); } svg circle.c2 { fill: var(--c2); }
svg circle.c3 { fill: var(--c3); } svg circle.c4 { fill: var(--c4); } svg circle.c5 { fill: var(--c5); }
svg text.c0 { fill: var(--c0); stroke: none; } svg text.c1 { fill: var(--c1); stroke: none; }
svg text.c2 { fill: var(--c2); stroke: none; } svg text.c3 { fill: var(--c3); stroke: none; }
svg text.c4 { fill: var(--c4); stroke: none; } svg text.c5 { fill: var(--c5); stroke: none; }
)css";

const std::string_view report_body = R"html(<div class='controls'>
<button id='in' title='zoom in (w)'>+</button><button id='out' title='zoom out (s)'>&minus;</button>
<button id='all' title='the whole time (0)'>all</button><button id='fold'>fold all</button>
<label><input type='checkbox' id='critical' checked> critical path</label>
<input type='search' id='find' placeholder='labels that contain' size='22'><span id='found'></span>
<span class='hint'>drag or a, d: move &middot; ctrl+wheel or w, s: zoom &middot; click: what it waited for &middot;
double click: zoom to it</span></div>
<div id='scroll'><canvas id='timeline' tabindex='0' role='img' aria-label='what ran where and when'></canvas>
<div id='spacer'></div></div>
<div id='tip' hidden></div><div id='legend'></div>
<noscript><p>The timeline is drawn by a script, which is off. The tables need none.</p></noscript>
)html";

}  // namespace trellis::sim
