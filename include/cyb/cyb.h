/* cyb.h: the stable C ABI of libcyb. Opaque handles, errors as objects, no global state.
 *
 * Rules. A function that can fail returns cyb_error*: NULL is success, anything else must be freed
 * with cyb_error_free. Strings are UTF-8, zero-terminated; a returned `const char*` lives as long
 * as the object it came from, a returned `char*` or array must be freed with cyb_free. Every
 * *_options struct begins with struct_size: set it with the *_init function and change what you
 * need; fields are only ever added at the end. A model may be shared by threads; a session serves
 * one call at a time (a second one gets the error "Busy"). Handles may be freed in any order. */
#ifndef CYB_CYB_H_
#define CYB_CYB_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CYB_API __attribute__((visibility("default")))
#else
#define CYB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function or a field is added; never for a change that breaks callers. */
#define CYB_ABI_VERSION 3

typedef struct cyb_error cyb_error;
typedef struct cyb_model cyb_model;
typedef struct cyb_session cyb_session;
typedef struct cyb_answer cyb_answer;

CYB_API const char* cyb_version(void);
CYB_API uint32_t cyb_abi_version(void);
CYB_API void cyb_free(void* memory);

/* ---- errors ---- */

/* "F11", "D1", "InvalidInput", ...: the table is docs/errors.md. */
CYB_API const char* cyb_error_code(const cyb_error* error);
/* One line for people. */
CYB_API const char* cyb_error_text(const cyb_error* error);
/* {"code", "kind", "message", "context", "detail"}. */
CYB_API const char* cyb_error_json(const cyb_error* error);
/* The exit code of the command line for this error, 1..5. */
CYB_API int cyb_error_exit_code(const cyb_error* error);
CYB_API void cyb_error_free(cyb_error* error);

/* ---- models ---- */

/* Progress of an import or a load; return non-zero to cancel. `what` is valid during the call. */
typedef int (*cyb_progress_fn)(void* user, uint64_t done, uint64_t total, const char* what);

typedef struct cyb_model_options {
  size_t struct_size;
  const char* path;         /* "auto", "curated", "graph", "nox" */
  const char* backend;      /* "auto", "reference", "cpu", ... */
  uint32_t n_threads;       /* 0: one per physical core */
  uint32_t ctx_tokens;      /* 0: what the model was trained for, at most 32768 */
  uint32_t max_sessions;    /* full contexts that the KV memory is for; 0: 1 */
  int exact;                /* f32 activations and KV */
  int no_fallback;          /* fail where the backend has no kernel */
  int verify;               /* check all hashes first */
  cyb_progress_fn progress; /* may be NULL */
  void* user;
  int no_fuse;         /* every op is a step of its own: slower, to compare */
  const char* kv_type; /* K and V as "f32", "f16", "q8", "q4"; NULL: the backend's own */
  uint32_t
      max_guesses; /* most tokens that an answer may guess ahead (lookup_tokens, draft_tokens) */
  /* Since ABI 3. LoRA adapters of the model, applied in this order: n_adapters paths of PEFT
   * folders or GGUF files, and as many weights (NULL: 1 each). What is not supported is refused: L
   * codes. */
  const char* const* adapters;
  size_t n_adapters;
  const double* adapter_weights;
} cyb_model_options;

CYB_API void cyb_model_options_init(cyb_model_options* options);

/* `what`: a .model, GGUF file or Hugging Face folder (imported into the store once), or a name or
 * id in the store. `options` may be NULL. */
CYB_API cyb_error* cyb_model_open(const char* what, const cyb_model_options* options,
                                  cyb_model** model);
CYB_API void cyb_model_free(cyb_model* model);
CYB_API const char* cyb_model_name(const cyb_model* model);
CYB_API const char* cyb_model_id(const cyb_model* model); /* "blake3:..." */
CYB_API const char* cyb_model_path(
    const cyb_model* model); /* the path that runs: "curated", "graph" */
CYB_API const char* cyb_model_backend(const cyb_model* model);
CYB_API uint32_t cyb_model_vocab_size(const cyb_model* model);
CYB_API uint32_t cyb_model_ctx_tokens(const cyb_model* model);

/* Imports `source` to `out_path` (NULL: into the store), replacing a file that is there; `name`
 * NULL: the source's own. `report_json` may be NULL. */
CYB_API cyb_error* cyb_import(const char* source, const char* out_path, const char* name,
                              cyb_progress_fn progress, void* user, char** report_json);

/* ---- text and tokens ---- */

#define CYB_PARSE_SPECIAL 1u /* control tokens written in the text are matched */
#define CYB_NO_BOS 2u        /* no begin-of-text token where the model would add one */

/* `n_bytes` bytes of text to ids. */
CYB_API cyb_error* cyb_tokenize(const cyb_model* model, const char* text, size_t n_bytes,
                                uint32_t flags, int32_t** ids, size_t* n_ids);
CYB_API cyb_error* cyb_detokenize(const cyb_model* model, const int32_t* ids, size_t n_ids,
                                  char** text);
/* Logits f32 [n_ids, vocab_size] into `out`, which holds `n_out` floats. */
CYB_API cyb_error* cyb_logits(cyb_model* model, const int32_t* ids, size_t n_ids, float* out,
                              size_t n_out);

/* ---- answers ---- */

typedef struct cyb_message {
  const char* role; /* "system", "user", "assistant" */
  const char* content;
} cyb_message;

/* A piece of the answer: whole UTF-8, `n_bytes` long. Return non-zero to end the answer. */
typedef int (*cyb_text_fn)(void* user, const char* text, size_t n_bytes);

typedef struct cyb_logit_bias {
  int32_t id;
  double bias; /* added to the raw logit; -INFINITY: never */
} cyb_logit_bias;

typedef struct cyb_answer_options {
  size_t struct_size;
  uint32_t max_tokens; /* 0: to a stop or a full context */
  double temperature;  /* NaN: the model's own (likewise the next three); 0: greedy */
  double top_p;
  double min_p;
  double repetition_penalty;
  int64_t top_k;    /* -1: the model's own; 0: off */
  uint64_t seed;    /* 0: a new one each time */
  int32_t logprobs; /* -1: none; k: log-probabilities in the JSON, of the k best tokens too */
  const char* const* stops; /* n_stops texts, none of them empty */
  size_t n_stops;
  cyb_text_fn on_text; /* may be NULL */
  void* user;
  /* Since ABI 2. NaN and -1: the model's own or the default, as above. */
  double temperature_range, temperature_exponent; /* dynamic temperature */
  double typical_p, top_n_sigma;
  double xtc_probability, xtc_threshold;
  double presence_penalty, frequency_penalty;
  double dry_multiplier, dry_base;
  double mirostat_tau, mirostat_eta;
  int64_t penalty_last_n, dry_allowed_length, dry_last_n;
  const char* const* dry_breakers; /* n_dry_breakers texts; NULL: newline, colon, quote, asterisk */
  size_t n_dry_breakers;
  const cyb_logit_bias* logit_bias;
  size_t n_logit_bias;
  const char*
      samplers; /* "temperature,top_p": these only, in this order; NULL: the default order */
  uint32_t row; /* number of the answer: same prompt and seed, random numbers of its own */
  const char* overflow;   /* "error", "truncate", "shift"; NULL: error */
  uint32_t lookup_tokens; /* guesses from the text so far; 0: none. The answer is the same */
  const cyb_model* draft; /* a smaller model of the same vocabulary that guesses; may be NULL */
  uint32_t draft_tokens;
} cyb_answer_options;

CYB_API void cyb_answer_options_init(cyb_answer_options* options);

CYB_API cyb_error* cyb_session_new(cyb_model* model, cyb_session** session);
CYB_API void cyb_session_free(cyb_session* session);
/* Forgets what the session holds. */
CYB_API cyb_error* cyb_session_reset(cyb_session* session);
/* Since ABI 2. The tokens that the session holds, with their K and V, to a file (written
 * atomically) and back. Restoring needs the same model, path, backend and KV type: else the errors
 * K02, K03; a damaged file is K01. `n_tokens` may be NULL. */
CYB_API cyb_error* cyb_session_save(cyb_session* session, const char* path);
CYB_API cyb_error* cyb_session_restore(cyb_session* session, const char* path, uint32_t* n_tokens);
/* Ends the answer that another thread is waiting for, which then returns with finish reason
 * "cancelled". */
CYB_API void cyb_session_cancel(cyb_session* session);

/* Answers a conversation by the model's own chat template. What the session holds already is not
 * computed again. */
CYB_API cyb_error* cyb_chat(cyb_session* session, const cyb_message* messages, size_t n_messages,
                            const cyb_answer_options* options, cyb_answer** answer);
/* Continues a text; control tokens in it are read as such. */
CYB_API cyb_error* cyb_complete(cyb_session* session, const char* text,
                                const cyb_answer_options* options, cyb_answer** answer);
/* Continues token ids, for models without a tokenizer. */
CYB_API cyb_error* cyb_complete_ids(cyb_session* session, const int32_t* ids, size_t n_ids,
                                    const cyb_answer_options* options, cyb_answer** answer);

CYB_API const char* cyb_answer_text(const cyb_answer* answer);
CYB_API const int32_t* cyb_answer_tokens(const cyb_answer* answer, size_t* n_tokens);
CYB_API const char* cyb_answer_finish_reason(
    const cyb_answer* answer); /* "stop", "length", "cancelled" */
CYB_API uint64_t cyb_answer_seed(const cyb_answer* answer);
/* The JSON object of `cyb-llm run --json`. */
CYB_API const char* cyb_answer_json(const cyb_answer* answer);
CYB_API void cyb_answer_free(cyb_answer* answer);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CYB_CYB_H_ */
