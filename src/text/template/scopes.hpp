// Static scopes, as jinja2's compiler sees them (idtracking.py): a name that a body assigns before
// it reads it is a variable of that body from its beginning, and undefined until it is assigned.
#pragma once

#include "text/template/ast.hpp"

namespace cyb::tmpl {

/// Fills ast.unset.
void find_scopes(Ast& ast);

}  // namespace cyb::tmpl
