/*
 * interrupt.c - SIGINT, SIGTERM and SIGHUP ask the run to stop after its step; a second one kills.
 *
 * The handler sets a flag, which the engine asks for once a step. Where the trace is standard
 * input the handler also puts /dev/null in its place: a read that waits for a silent pipe then
 * comes back with the end of the file.
 */
#include "interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t null_fd = -1;

/* A terminal that is closed (SIGHUP) is no reason to lose what was done. */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define NUM_SIGNALS (sizeof signals / sizeof *signals)
static struct sigaction former[NUM_SIGNALS];

static void handle(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
    if (null_fd >= 0)
        dup2(null_fd, STDIN_FILENO);
}

/* A signal that was ignored when the program began (nohup, a background job) stays so. */
static void install(int signal_number, struct sigaction *out_former)
{
    struct sigaction action = {.sa_handler = handle};
    sigemptyset(&action.sa_mask);
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(signal_number, NULL, out_former);
    if (out_former->sa_handler != SIG_IGN)
        sigaction(signal_number, &action, NULL);
}

void cli_interrupt_begin(bool reads_stdin)
{
    interrupted = 0;
    if (reads_stdin)
        null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < NUM_SIGNALS; i++)
        install(signals[i], &former[i]);
}

void cli_interrupt_end(void)
{
    for (size_t i = 0; i < NUM_SIGNALS; i++)
        sigaction(signals[i], &former[i], NULL);
    if (null_fd >= 0)
        close(null_fd);
    null_fd = -1;
}

bool cli_interrupted(void)
{
    return interrupted != 0;
}
