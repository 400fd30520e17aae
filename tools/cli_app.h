// The name of CLI11's App, for headers that pass it on: the library itself takes seconds in everything that includes
// it.
#pragma once

namespace CLI {
class App;
}
