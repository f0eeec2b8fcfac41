/* answer.c: one streamed answer through the C ABI.
 * cc answer.c $(pkg-config --cflags --libs cyb) && ./a.out MODEL "What is gravity?"
 */
#include <cyb/cyb.h>
#include <stdio.h>

static int print_piece(void* user, const char* text, size_t n_bytes) {
  (void)user;
  return fwrite(text, 1, n_bytes, stdout) != n_bytes ||
         fflush(stdout) != 0; /* non-zero ends the answer */
}

/* Prints and frees an error; the exit code of the command line for it. */
static int report(cyb_error* error) {
  const int code = cyb_error_exit_code(error);
  fprintf(stderr, "error %s: %s\n", cyb_error_code(error), cyb_error_text(error));
  cyb_error_free(error);
  return code;
}

static int answer_on(cyb_session* session, const char* prompt) {
  const cyb_message message = {"user", prompt};
  cyb_answer_options options;
  cyb_answer* answer = NULL;
  cyb_error* error = NULL;
  cyb_answer_options_init(&options);
  options.max_tokens = 64;
  options.temperature = 0; /* greedy */
  options.on_text = print_piece;
  error = cyb_chat(session, &message, 1, &options, &answer);
  if (error != NULL) return report(error);
  printf("\n(%s)\n", cyb_answer_finish_reason(answer));
  cyb_answer_free(answer);
  return 0;
}

int main(int argc, char** argv) {
  cyb_model* model = NULL;
  cyb_session* session = NULL;
  cyb_error* error = NULL;
  int code = 0;
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]);
    return 1;
  }
  error = cyb_model_open(argv[1], NULL, &model);
  if (error != NULL) return report(error);
  error = cyb_session_new(model, &session);
  code = error != NULL ? report(error) : answer_on(session, argv[2]);
  cyb_session_free(session);
  cyb_model_free(model);
  return code;
}
