// What jinja2 works out while it compiles a template. The one difference that shows: a slice of
// something that has no items is undefined there, and an error at run time.
#pragma once

#include "text/template/ast.hpp"

namespace cyb::tmpl {

/// Sets Node::folds: expressions of which a part is constant and has a slice.
void mark_folding(Ast& ast);

}  // namespace cyb::tmpl
