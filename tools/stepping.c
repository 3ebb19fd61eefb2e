/*
 * stepping.c - --step: shows the page of a step, asks, and does what the answer says.
 *
 * Pages go to stdout, the prompt and what is said about commands to stderr, so that the pages alone
 * can be kept. Standard input need not be a terminal; where it ends the run goes on without pauses.
 */
#include "stepping.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli.h"
#include "interrupt.h"
#include "terminal.h"

/* What a command does to the pause. */
enum answer { ANSWER_GO_ON, ANSWER_SHOW, ANSWER_ASK_AGAIN };

struct command {
    const char *words[3];      /* any of them */
    const char *argument;      /* NULL = takes none */
    const char *help;
    enum answer (*obey)(struct cli_stepping *s, const char *argument);
};

static enum answer pause_at(struct cli_stepping *s, enum pkv_pause pause)
{
    pkv_stepper_pause_at(s->stepper, pause, 0);
    return ANSWER_GO_ON;
}

static enum answer on_by(struct cli_stepping *s, uint64_t num_steps)
{
    uint64_t now = pkv_stepper_step(s->stepper);
    pkv_stepper_pause_at(s->stepper, PKV_PAUSE_STEP,
                         num_steps < UINT64_MAX - now ? now + num_steps : UINT64_MAX);
    return ANSWER_GO_ON;
}

static enum answer obey_next(struct cli_stepping *s, const char *argument)
{
    (void)argument;
    return on_by(s, 1);
}

static enum answer obey_goto(struct cli_stepping *s, const char *argument)
{
    uint64_t step, now = pkv_stepper_step(s->stepper);
    const char *why = "";
    if (argument[0] == 0) {
        cli_complain("which step? g N goes to step N");
        return ANSWER_ASK_AGAIN;
    }
    if (pkv_parse_u64(argument, strlen(argument), UINT64_MAX, &step, &why) < 0) {
        cli_complain("'%s' %s: g N goes to step N", argument, why);
        return ANSWER_ASK_AGAIN;
    }
    if (step <= now) {
        cli_complain("this is step %" PRIu64 ", and a run only goes forward", now);
        return ANSWER_ASK_AGAIN;
    }
    pkv_stepper_pause_at(s->stepper, PKV_PAUSE_STEP, step);
    return ANSWER_GO_ON;
}

static enum answer obey_preemption(struct cli_stepping *s, const char *argument)
{
    (void)argument;
    return pause_at(s, PKV_PAUSE_PREEMPTION);
}

static enum answer obey_admission(struct cli_stepping *s, const char *argument)
{
    (void)argument;
    return pause_at(s, PKV_PAUSE_ADMISSION);
}

static enum answer obey_blocked(struct cli_stepping *s, const char *argument)
{
    (void)argument;
    return pause_at(s, PKV_PAUSE_BLOCKED);
}

static enum answer obey_request(struct cli_stepping *s, const char *argument)
{
    if (argument[0] != 0 && !pkv_stepper_has(s->stepper, argument)) {
        cli_complain("no request '%s' runs or waits in this step", argument);
        return ANSWER_ASK_AGAIN;
    }
    pkv_text_clear(&s->only);
    pkv_text_add(&s->only, argument);
    return ANSWER_SHOW;
}

static enum answer obey_continue(struct cli_stepping *s, const char *argument)
{
    (void)argument;
    return pause_at(s, PKV_PAUSE_NEVER);
}

static enum answer obey_quit(struct cli_stepping *s, const char *argument)
{
    (void)argument;
    s->has_stopped = true;
    return pause_at(s, PKV_PAUSE_NEVER);
}

static enum answer obey_help(struct cli_stepping *s, const char *argument);

static const struct command commands[] = {
    {{""}, NULL, "the next step", obey_next},
    {{"g", "step"}, "N", "on to step N", obey_goto},
    {{"p"}, NULL, "on to the next preemption", obey_preemption},
    {{"a"}, NULL, "on to the next admission, of a preempted request too", obey_admission},
    {{"b"}, NULL, "on to the next head of the queue that is refused, once for each cause of a wait",
     obey_blocked},
    {{"r"}, "ID", "show this request alone; r without ID: all of them", obey_request},
    {{"c"}, NULL, "on to the end without pauses, as when input ends", obey_continue},
    {{"q"}, NULL, "stop here; what was done is kept, exit status 3", obey_quit},
    {{"h", "?"}, NULL, "these commands", obey_help},
};
#define NUM_COMMANDS (sizeof commands / sizeof *commands)

static enum answer obey_help(struct cli_stepping *s, const char *argument)
{
    (void)s, (void)argument;
    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        const struct command *c = &commands[i];
        char left[32];
        snprintf(left, sizeof left, "%s%s%s%s%s", c->words[0][0] ? c->words[0] : "Enter",
                 c->words[1] ? ", " : "", c->words[1] ? c->words[1] : "", c->argument ? " " : "",
                 c->argument ? c->argument : "");
        fprintf(stderr, "  %-12s %s\n", left, c->help);
        if (i == 0)
            fprintf(stderr, "  %-12s %s\n", "N", "N steps on, N a number");
    }
    return ANSWER_ASK_AGAIN;
}

static const struct command *find_command(const char *word, size_t length)
{
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        for (size_t j = 0; j < 3 && commands[i].words[j] != NULL; j++)
            if (strlen(commands[i].words[j]) == length &&
                memcmp(commands[i].words[j], word, length) == 0)
                return &commands[i];
    return NULL;
}

/* A number alone: so many steps on. */
static enum answer obey_number(struct cli_stepping *s, const char *text)
{
    uint64_t num_steps;
    const char *why = "";
    if (pkv_parse_u64(text, strlen(text), UINT64_MAX, &num_steps, &why) < 0)
        cli_complain("'%s' %s", text, why);
    else if (num_steps == 0)
        cli_complain("0 steps on is here");
    else
        return on_by(s, num_steps);
    return ANSWER_ASK_AGAIN;
}

static enum answer obey(struct cli_stepping *s, const char *text)
{
    size_t length = strcspn(text, " ");
    const char *argument = text + length + strspn(text + length, " ");
    if (text[0] >= '0' && text[0] <= '9')
        return obey_number(s, text);
    const struct command *command = find_command(text, length);
    if (command == NULL)
        cli_complain("unknown command '%s'; h lists them", text);
    else if (command->argument == NULL && argument[0] != 0)
        cli_complain("%s takes no argument; h lists the commands", command->words[0]);
    else
        return command->obey(s, argument);
    return ANSWER_ASK_AGAIN;
}

/* A line without the blanks around it; false where there is no more input. */
static bool read_line(struct pkv_text *line)
{
    int c;
    pkv_text_clear(line);
    while ((c = getc(stdin)) != EOF && c != '\n') {
        char byte = c == '\t' || c == '\r' || c == 0 ? ' ' : (char)c;
        if (byte != ' ' || line->length > 0)
            pkv_text_bytes(line, &byte, 1);
    }
    if (c == EOF && (line->length == 0 || ferror(stdin)))
        return false;
    pkv_text_add(line, "");
    while (line->length > 0 && line->text[line->length - 1] == ' ')
        line->text[--line->length] = 0;
    return true;
}

/* Where nobody types, what was read stands behind the prompt all the same. */
static void echo(const struct pkv_text *line)
{
    struct pkv_text shown = {0};
    if (isatty(STDIN_FILENO))
        return;
    pkv_text_visible(&shown, line->text != NULL ? line->text : "", line->length);
    fprintf(stderr, "%s\n", shown.text != NULL ? shown.text : "");
    pkv_text_free(&shown);
}

static enum answer ask(struct cli_stepping *s, struct pkv_err *err)
{
    fprintf(stderr, "step %" PRIu64 ", Enter = next, h = help> ", pkv_stepper_step(s->stepper));
    fflush(stderr);
    if (!read_line(&s->line) || cli_interrupted()) {
        fputs("\n", stderr);
        return pause_at(s, PKV_PAUSE_NEVER);
    }
    echo(&s->line);
    enum answer answer = s->line.failed ? ANSWER_GO_ON : obey(s, s->line.text ? s->line.text : "");
    if (s->line.failed || s->only.failed)
        pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a command");
    return answer;
}

static int show(struct cli_stepping *s, struct pkv_err *err)
{
    struct pkv_report_style style = cli_style();
    char *page = pkv_stepper_page(s->stepper, s->only.length > 0 ? s->only.text : NULL, &style, err);
    if (page == NULL)
        return -1;
    enum cli_exit written = cli_write(page, strlen(page));
    pkv_report_free(page);
    if (written != CLI_DONE) {    /* nobody can see it: cli_write() has said why */
        s->has_stopped = true;
        pkv_stepper_pause_at(s->stepper, PKV_PAUSE_NEVER, 0);
    }
    return 0;
}

static int on_pause(void *ctx, struct pkv_err *err)
{
    struct cli_stepping *s = ctx;
    enum answer answer = ANSWER_SHOW;
    if (cli_interrupted())
        return 0;
    while (answer != ANSWER_GO_ON) {
        if (answer == ANSWER_SHOW && show(s, err) < 0)
            return -1;
        if (s->has_stopped)
            return 0;
        answer = ask(s, err);
    }
    return s->line.failed || s->only.failed ? -1 : 0;
}

int cli_stepping_begin(struct cli_stepping *s, const struct pkv_scenario *scenario,
                       struct pkv_err *err)
{
    struct pkv_stepper_config config = {.scenario = scenario, .pause = on_pause, .ctx = s};
    s->stepper = pkv_stepper_create(&config, err);
    return s->stepper != NULL ? 0 : -1;
}

void cli_stepping_end(struct cli_stepping *s)
{
    pkv_stepper_destroy(s->stepper);
    pkv_text_free(&s->only);
    pkv_text_free(&s->line);
}
