/*
 * value_word.c - values that are words: of a list, a policy, a preset, a format of traces.
 *
 * A word that is not known is refused with the nearest one and all that are.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "scenario/scenario_private.h"

/* "a, b, c" for a sentence, and which of them is near. */
struct word_list {
    struct pkv_nearest nearest;
    char text[320];
    size_t length;
};

static void begin_list(struct word_list *list, const struct value *v)
{
    pkv_nearest_begin(&list->nearest, v->node->text);
    list->text[0] = '\0';
    list->length = 0;
}

static void list_word(struct word_list *list, const char *word)
{
    size_t room = sizeof(list->text) - list->length;
    int length = snprintf(list->text + list->length, room, "%s%s", list->length ? ", " : "", word);

    pkv_nearest_offer(&list->nearest, word);
    list->length += (size_t)length < room ? (size_t)length : room - 1;
}

static int fail_word(const struct value *v, const struct word_list *known, struct pkv_err *err)
{
    char hint[PKV_SUGGESTION_SIZE];

    return value_fail(v, err, "'%.40s' is not known%s; known: %s", v->node->text,
                      pkv_nearest_say(&known->nearest, "", hint), known->text);
}

int value_read_word(const struct value *v, struct pkv_err *err)
{
    const char *const *words = keys[v->source].words;
    struct word_list known;

    if (value_want_scalar(v, "a word", err) < 0)
        return -1;
    begin_list(&known, v);
    for (unsigned i = 0; words[i]; i++) {
        if (strcmp(words[i], v->node->text) == 0) {
            *(unsigned *)value_field(v) = i;
            return 0;
        }
        list_word(&known, words[i]);
    }
    return fail_word(v, &known, err);
}

static int set_policy(const struct value *v, const char *word, struct pkv_err *err)
{
    enum pkv_choice choice = keys[v->key].choice;
    const struct pkv_policy_info *policy = pkv_policy_find(choice, word);
    const struct pkv_policy_info *const *list;
    struct word_list known;
    size_t num;

    if (policy) {
        pkv_policies_set(&v->scenario->sched.policies, choice, policy);
        return 0;
    }
    list = pkv_policy_list(choice, &num);
    begin_list(&known, v);
    for (size_t i = 0; i < num; i++)
        list_word(&known, list[i]->name);
    return fail_word(v, &known, err);
}

int value_read_choice(const struct value *v, struct pkv_err *err)
{
    if (value_want_scalar(v, "a policy", err) < 0)
        return -1;
    return set_policy(v, v->node->text, err);
}

/* The engine's fcfs or priority: whom to take first, whom to give up, where that one waits. */
int value_read_scheduling_policy(const struct value *v, struct pkv_err *err)
{
    struct word_list known;
    bool by_priority;

    if (value_want_scalar(v, "fcfs or priority", err) < 0)
        return -1;
    by_priority = strcmp(v->node->text, "priority") == 0;
    if (!by_priority && strcmp(v->node->text, "fcfs") != 0) {
        begin_list(&known, v);
        list_word(&known, "fcfs");
        list_word(&known, "priority");
        return fail_word(v, &known, err);
    }
    if (v->key == KEY_ORDER)
        return set_policy(v, by_priority ? "priority" : "fcfs", err);
    if (v->key == KEY_PREEMPT)
        return set_policy(v, by_priority ? "priority" : "newest", err);
    return set_policy(v, by_priority ? "by_order" : "front", err);
}

int value_read_full_isl(const struct value *v, struct pkv_err *err)
{
    bool whole;

    if (value_read_flag(v, &whole, err) < 0)
        return -1;
    return set_policy(v, whole ? "whole_prompt" : "first_chunk", err);
}

int value_read_preset(const struct value *v, struct pkv_err *err)
{
    const struct pkv_preset *preset;
    const struct pkv_preset *const *list;
    struct word_list known;
    size_t num;

    if (value_want_scalar(v, "a preset", err) < 0)
        return -1;
    preset = pkv_preset_find(v->node->text);
    if (preset)
        return value_keep_text(v, pkv_strdup(preset->name, err));
    list = pkv_preset_list(&num);
    begin_list(&known, v);
    for (size_t i = 0; i < num; i++)
        list_word(&known, list[i]->name);
    return fail_word(v, &known, err);
}

int value_read_format(const struct value *v, struct pkv_err *err)
{
    struct word_list known;
    const struct pkv_trace_format *const *list;
    size_t num, i;

    if (value_want_scalar(v, "a format", err) < 0)
        return -1;
    list = pkv_trace_format_list(&num);
    begin_list(&known, v);
    list_word(&known, "auto");
    for (i = 0; i < num && strcmp(list[i]->name, v->node->text) != 0; i++)
        list_word(&known, list[i]->name);
    if (i == num && strcmp(v->node->text, "auto") != 0)
        return fail_word(v, &known, err);
    *(const char **)value_field(v) = i < num ? list[i]->name : NULL;
    return 0;
}
