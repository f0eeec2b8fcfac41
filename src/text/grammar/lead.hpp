// Texts without a marker in them, and what may stand before a grammar's own text.
#pragma once

#include <span>
#include <string_view>

#include "text/grammar/expression.hpp"
#include "text/grammar/grammar.hpp"

namespace cyb::text {

/// Any text in which `marker` does not occur, and then `marker`; without `closed` the same text
/// alone. The marker is one character some times over, or its first one stands in it once.
ExprId text_before(GrammarRules& rules, std::string_view marker, bool closed);
/// Any text in which none of the markers occurs. They begin with one character, which stands in
/// each of them once.
ExprId text_without(GrammarRules& rules, std::span<const std::string_view> markers);

/// Puts the lead in front of the root.
void add_lead(GrammarRules& rules, const GrammarLead& lead);
/// The lead alone.
ExprId lead_expr(GrammarRules& rules, const GrammarLead& lead);

}  // namespace cyb::text
