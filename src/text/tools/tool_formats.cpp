// The formats, as the templates of the models write them. docs/adding.md says how to add one.
#include <algorithm>

#include "text/tools/tool_format.hpp"

namespace cyb {
namespace {

using enum ToolStep;
using enum ToolPlace;

// Hermes, Qwen: <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>; small ones leave the
// tags out.
constexpr ToolTrigger kHermesTriggers[] = {{"<tool_call>"}, {"{", kStart, 5, false}};
constexpr ToolOp kHermesOps[] = {{kSpace}, {kObject}, {kSpace}, {kText, "</tool_call>"},
                                 {kEnd},   {kObject}, {kEnd}};
constexpr std::string_view kHermesMarkers[] = {"<tool_call>", "</tool_call>"};
constexpr ToolLayout kHermesLayout{.before = "<tool_call>\n{\"name\": \"",
                                   .middle = "\", \"arguments\": ",
                                   .after = "}\n</tool_call>",
                                   .between = "\n"};

// Qwen3-Coder: <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n
// </tool_call>; the outer tags may be left out.
constexpr ToolTags kQwenTags{.key = "<parameter=",
                             .key_end = ">",
                             .value_end = "</parameter>",
                             .end = "</function>",
                             .after = "\n",
                             .lines = true};
constexpr ToolTrigger kQwenTriggers[] = {{"<tool_call>"}, {"<function=", kContent, 2}};
constexpr ToolOp kQwenOps[] = {{kSpace},
                               {kText, "<function="},
                               {kName},
                               {kText, ">"},
                               {kTagged},
                               {kSpace},
                               {kTry, "<function=", 2, 7},
                               {kTry, "</tool_call>", 8, 8},
                               {kEnd}};
constexpr ToolLayout kQwenLayout{.before = "<tool_call>\n<function=",
                                 .middle = ">\n",
                                 .after = "</function>\n</tool_call>",
                                 .between = "\n"};

// GLM 4.5, 4.6:
// <tool_call>NAME\n<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n</tool_call>; from 4.7 on
// without line breaks.
constexpr ToolTags kGlmTags{.key = "<arg_key>",
                            .key_end = "</arg_key>",
                            .value = "<arg_value>",
                            .value_end = "</arg_value>",
                            .end = "</tool_call>",
                            .gap = "\n",
                            .after = "\n",
                            .untyped_json = true};
constexpr ToolTags kGlmTightTags{.key = "<arg_key>",
                                 .key_end = "</arg_key>",
                                 .value = "<arg_value>",
                                 .value_end = "</arg_value>",
                                 .end = "</tool_call>",
                                 .untyped_json = true};
constexpr ToolTrigger kGlmTriggers[] = {{"<tool_call>"}};
constexpr ToolOp kGlmOps[] = {{kSpace}, {kName}, {kTagged}, {kEnd}};
constexpr std::string_view kGlmMarkers[] = {"<tool_call>", "</tool_call>", "<arg_key>",
                                            "</arg_key>",  "<arg_value>",  "</arg_value>"};
constexpr std::string_view kGlmStops[] = {"<|observation|>", "<|user|>"};
constexpr ToolLayout kGlmLayout{
    .before = "<tool_call>", .middle = "\n", .after = "</tool_call>", .between = "\n"};
constexpr ToolLayout kGlmTightLayout{.before = "<tool_call>", .after = "</tool_call>"};

// Kimi K2: a section of calls, functions.NAME:INDEX and JSON of each.
constexpr std::string_view kSectionBegin = "<|tool_calls_section_begin|>",
                           kSectionEnd = "<|tool_calls_section_end|>",
                           kKimiBegin = "<|tool_call_begin|>", kKimiEnd = "<|tool_call_end|>",
                           kKimiArguments = "<|tool_call_argument_begin|>";
constexpr ToolTrigger kKimiTriggers[] = {{kSectionBegin}};
constexpr ToolOp kKimiOps[] = {{kSpace},
                               {kTry, kKimiBegin, 2, 14},
                               {kSpace},
                               {kTry, "functions.", 4, 4},
                               {kName},
                               {kTry, ":", 6, 7},
                               {kWord},
                               {kSpace},
                               {kText, kKimiArguments},
                               {kSpace},
                               {kArguments},
                               {kSpace},
                               {kText, kKimiEnd},
                               {kGo, "", 0},
                               {kText, kSectionEnd},
                               {kEnd}};
constexpr std::string_view kKimiMarkers[] = {kSectionBegin, kSectionEnd, kKimiBegin, kKimiEnd,
                                             kKimiArguments};
constexpr ToolLayout kKimiLayout{.before_all = kSectionBegin,
                                 .before = "<|tool_call_begin|>functions.",
                                 .middle = kKimiArguments,
                                 .after = kKimiEnd,
                                 .after_all = kSectionEnd,
                                 .numbered = true};

// Llama 3: {"name": ..., "parameters": {...}}, after <|python_tag|> or alone, with ; between
// several; <|python_tag|>name.call(key="value"); <|python_tag|>code.
constexpr ToolTrigger kLlamaTriggers[] = {{"{", kStart, 0, false}, {"<|python_tag|>", kContent, 4}};
constexpr ToolOp kLlamaOps[] = {{kObject}, {kSpace},           {kTry, ";", 3, 3},   {kEnd},
                                {kSpace},  {kPeek, "{", 0, 6}, {kIfCode, "", 7, 8}, {kCode},
                                {kName},   {kText, ".call"},   {kKeywords},         {kEnd}};
constexpr std::string_view kLlamaMarkers[] = {"<|python_tag|>"};
constexpr std::string_view kLlamaStops[] = {"<|eom_id|>"};
constexpr ToolLayout kLlamaLayout{
    .before = "{\"name\": \"", .middle = "\", \"parameters\": ", .after = "}", .several = false};

// Mistral: [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]; newer: [TOOL_CALLS]name[ARGS]{...}
// with or without [CALL_ID]id before [ARGS].
constexpr ToolTrigger kMistralTriggers[] = {{"[TOOL_CALLS]"}};
constexpr ToolOp kMistralOps[] = {{kSpace},
                                  {kPeek, "[", 2, 9},
                                  {kText, "["},
                                  {kSpace},
                                  {kObject},
                                  {kSpace},
                                  {kTry, ",", 3, 7},
                                  {kText, "]"},
                                  {kEnd},
                                  {kName},
                                  {kTry, "[CALL_ID]", 11, 12},
                                  {kWord},
                                  {kTry, "[ARGS]", 13, 13},
                                  {kSpace},
                                  {kArguments},
                                  {kEnd}};
constexpr std::string_view kMistralMarkers[] = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"};
constexpr ToolLayout kMistralLayout{.before_all = "[TOOL_CALLS][",
                                    .before = "{\"name\": \"",
                                    .middle = "\", \"arguments\": ",
                                    .after = "}",
                                    .between = ", ",
                                    .after_all = "]"};
constexpr ToolLayout kMistralNameLayout{.before = "[TOOL_CALLS]", .middle = "[ARGS]"};

// DeepSeek: R1 and V3 write the type, then name and fenced JSON; V3.1 writes name and JSON.
#define CYB_DEEPSEEK(word) "<\uFF5C" word "\uFF5C>"
constexpr std::string_view kCallsBegin = CYB_DEEPSEEK("tool\u2581calls\u2581begin"),
                           kCallsEnd = CYB_DEEPSEEK("tool\u2581calls\u2581end"),
                           kCallBegin = CYB_DEEPSEEK("tool\u2581call\u2581begin"),
                           kCallEnd = CYB_DEEPSEEK("tool\u2581call\u2581end"),
                           kCallSep = CYB_DEEPSEEK("tool\u2581sep");
constexpr ToolTrigger kDeepSeekTriggers[] = {{kCallsBegin}};
constexpr ToolOp kDeepSeekOps[] = {{kSpace},
                                   {kTry, kCallBegin, 2, 15},
                                   {kName},
                                   {kText, kCallSep},
                                   {kPeek, "{", 9, 5},
                                   {kName},
                                   {kSpace},
                                   {kText, "```json"},
                                   {kSpace},
                                   {kArguments},
                                   {kSpace},
                                   {kTry, "```", 12, 12},
                                   {kSpace},
                                   {kText, kCallEnd},
                                   {kGo, "", 0},
                                   {kText, kCallsEnd},
                                   {kEnd}};
constexpr std::string_view kDeepSeekMarkers[] = {kCallsBegin, kCallsEnd, kCallBegin, kCallEnd,
                                                 kCallSep};
constexpr ToolLayout kDeepSeekFencedLayout{
    .before_all = kCallsBegin,
    .before = CYB_DEEPSEEK("tool\u2581call\u2581begin") "function" CYB_DEEPSEEK("tool\u2581sep"),
    .middle = "\n```json\n",
    .after = "\n```" CYB_DEEPSEEK("tool\u2581call\u2581end"),
    .between = "\n",
    .after_all = kCallsEnd};
constexpr ToolLayout kDeepSeekLayout{.before_all = kCallsBegin,
                                     .before = kCallBegin,
                                     .middle = kCallSep,
                                     .after = kCallEnd,
                                     .after_all = kCallsEnd};
#undef CYB_DEEPSEEK

// Functionary v3.1: <function=name>{...}</function>, <|python_tag|>code.
constexpr ToolTrigger kFunctionTagTriggers[] = {{"<function="}, {"<|python_tag|>", kContent, 7}};
constexpr ToolOp kFunctionTagOps[] = {{kName},  {kText, ">"},           {kSpace}, {kArguments},
                                      {kSpace}, {kText, "</function>"}, {kEnd},   {kCode}};
constexpr ToolLayout kFunctionTagLayout{
    .before = "<function=", .middle = ">", .after = "</function>"};

// Functionary v3.2: the prompt ends with >>>; then recipient, line break, content; >>> again.
constexpr ToolTrigger kRecipientTriggers[] = {{">>>"}};
constexpr ToolOp kRecipientOps[] = {
    {kTry, "all\n", 1, 2}, {kEnd},       {kName}, {kText, "\n"}, {kSpace}, {kPeek, "{", 7, 6},
    {kIfCode, "", 9, 7},   {kArguments}, {kEnd},  {kCode}};
constexpr ToolLayout kRecipientLayout{.middle = "\n", .between = "\n>>>"};

// gpt-oss (harmony):
// <|channel|>analysis|commentary|final<|message|>...<|end|><|start|>assistant...; a call's header
// says to=functions.NAME, in the role or in the channel.
constexpr ToolTrigger kHarmonyTriggers[] = {{"<|channel|>", kAnywhere, 0, false},
                                            {"<|start|>", kAnywhere, 0, false},
                                            {"<|end|>", kAnywhere, 3},
                                            {"<|return|>", kAnywhere, 3},
                                            {"<|call|>", kAnywhere, 3}};
constexpr ToolOp kHarmonyOps[] = {{kHeader, "<|message|>", 1}, {kSpace}, {kArguments}, {kEnd}};
constexpr std::string_view kHarmonyMarkers[] = {"<|channel|>", "<|start|>", "<|end|>",
                                                "<|message|>", "<|constrain|>"};
constexpr std::string_view kHarmonyStops[] = {"<|call|>", "<|return|>"};
constexpr ToolLayout kHarmonyLayout{.before = "<|channel|>commentary to=functions.",
                                    .middle = " <|constrain|>json<|message|>",
                                    .several = false};

// Gemma: a fence with Python's call or with JSON in it.
constexpr ToolTrigger kGemmaTriggers[] = {{"```tool_code"}, {"```tool_call"}, {"```json"}};
constexpr ToolOp kGemmaOps[] = {{kSpace},
                                {kPeek, "{", 2, 4},
                                {kObject},
                                {kGo, "", 14},
                                {kPeek, "[", 5, 12},
                                {kText, "["},
                                {kSpace},
                                {kObject},
                                {kSpace},
                                {kTry, ",", 6, 10},
                                {kText, "]"},
                                {kGo, "", 14},
                                {kName},
                                {kKeywords},
                                {kSpace},
                                {kText, "```"},
                                {kEnd}};
constexpr ToolLayout kGemmaLayout{.before = "```tool_code\n{\"name\": \"",
                                  .middle = "\", \"parameters\": ",
                                  .after = "}\n```",
                                  .between = "\n"};

// Models whose templates know no tools: what tool_prompt asks for, and what they write instead.
constexpr ToolTrigger kGenericTriggers[] = {{"{", kStart, 0, false},
                                            {"[", kStart, 2, false},
                                            {"<tool_call>", kContent, 9},
                                            {"```json", kStart, 13}};
constexpr ToolOp kGenericOps[] = {{kObject},
                                  {kEnd},
                                  {kText, "["},
                                  {kSpace},
                                  {kObject},
                                  {kSpace},
                                  {kTry, ",", 3, 7},
                                  {kText, "]"},
                                  {kEnd},
                                  {kSpace},
                                  {kObject},
                                  {kSpace},
                                  {kTry, "</tool_call>", 1, 17},
                                  {kSpace},
                                  {kObject},
                                  {kSpace},
                                  {kText, "```"},
                                  {kEnd}};
constexpr ToolLayout kGenericLayout{
    .before = "{\"name\": \"", .middle = "\", \"arguments\": ", .after = "}", .between = "\n"};

constexpr ToolFormat kFormats[] = {
    {.name = "hermes",
     .triggers = kHermesTriggers,
     .ops = kHermesOps,
     .layout = kHermesLayout,
     .free_end = "<tool_call>",
     .markers = kHermesMarkers},
    {.name = "llama3",
     .triggers = kLlamaTriggers,
     .ops = kLlamaOps,
     .layout = kLlamaLayout,
     .markers = kLlamaMarkers,
     .stops = kLlamaStops},
    {.name = "mistral",
     .triggers = kMistralTriggers,
     .ops = kMistralOps,
     .layout = kMistralLayout,
     .free_end = "[TOOL_CALLS]",
     .ids = CallIds::kShort,
     .markers = kMistralMarkers},
    {.name = "mistral-args",
     .triggers = kMistralTriggers,
     .ops = kMistralOps,
     .layout = kMistralNameLayout,
     .free_end = "[TOOL_CALLS]",
     .ids = CallIds::kShort,
     .markers = kMistralMarkers},
    {.name = "deepseek-r1",
     .triggers = kDeepSeekTriggers,
     .ops = kDeepSeekOps,
     .layout = kDeepSeekFencedLayout,
     .free_end = kCallsBegin,
     .markers = kDeepSeekMarkers},
    {.name = "deepseek-v3.1",
     .triggers = kDeepSeekTriggers,
     .ops = kDeepSeekOps,
     .layout = kDeepSeekLayout,
     .free_end = kCallsBegin,
     .markers = kDeepSeekMarkers},
    {.name = "functionary-v3.1",
     .triggers = kFunctionTagTriggers,
     .ops = kFunctionTagOps,
     .layout = kFunctionTagLayout,
     .free_end = "<function=",
     .markers = kLlamaMarkers,
     .stops = kLlamaStops},
    {.name = "functionary-v3.2",
     .triggers = kRecipientTriggers,
     .ops = kRecipientOps,
     .layout = kRecipientLayout,
     .starts_with = ">>>",
     .free_end = ">>>"},
    {.name = "gpt-oss",
     .triggers = kHarmonyTriggers,
     .ops = kHarmonyOps,
     .layout = kHarmonyLayout,
     .starts_with = "<|start|>",
     .free_end = "<|channel|>",
     .channels = true,
     .markers = kHarmonyMarkers,
     .stops = kHarmonyStops},
    {.name = "gemma",
     .triggers = kGemmaTriggers,
     .ops = kGemmaOps,
     .layout = kGemmaLayout,
     .free_end = "```"},
    {.name = "generic",
     .triggers = kGenericTriggers,
     .ops = kGenericOps,
     .layout = kGenericLayout,
     .markers = kHermesMarkers},
    {.name = "qwen3-coder",
     .triggers = kQwenTriggers,
     .ops = kQwenOps,
     .layout = kQwenLayout,
     .free_end = "<tool_call>",
     .free_end_too = "<function=",
     .tags = &kQwenTags,
     .markers = kHermesMarkers},
    {.name = "glm-4.5",
     .triggers = kGlmTriggers,
     .ops = kGlmOps,
     .layout = kGlmLayout,
     .free_end = "<tool_call>",
     .tags = &kGlmTags,
     .markers = kGlmMarkers,
     .stops = kGlmStops},
    {.name = "glm-4.7",
     .triggers = kGlmTriggers,
     .ops = kGlmOps,
     .layout = kGlmTightLayout,
     .free_end = "<tool_call>",
     .tags = &kGlmTightTags,
     .markers = kGlmMarkers,
     .stops = kGlmStops},
    {.name = "kimi-k2",
     .triggers = kKimiTriggers,
     .ops = kKimiOps,
     .layout = kKimiLayout,
     .free_end = kSectionBegin,
     .ids = CallIds::kNamed,
     .markers = kKimiMarkers},
};

}  // namespace

std::span<const ToolFormat> tool_formats() {
  return kFormats;
}

const ToolFormat* find_tool_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &ToolFormat::name);
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace cyb
