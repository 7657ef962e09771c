/* A bolt in C: makes the ASCII letters of a word large.

   cc -O2 -o shout shout.c

   There is no JSON in C's own library. What is read has one line and plain text for its first
   value, so looking for the names of its fields does; a real bolt would use a library. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the protocol: one line of JSON, and a line "end" behind it --- */

static char *line;
static size_t room;

static void receive(void) {
    char *end = NULL;
    size_t end_room = 0;
    if (getline(&line, &room, stdin) < 0 || getline(&end, &end_room, stdin) < 0)
        exit(0);
    free(end);
}

static void send_message(const char *message) {
    printf("%s\nend\n", message);
    fflush(stdout);
}

/* The text of a field, behind the quotation mark that begins it, cut off at the one that ends it.
   A backslash protects what follows, so texts stay as they were escaped. */
static char *text_of(const char *message, const char *name) {
    const char *start = strstr(message, name), *stop;
    if (!start)
        return strdup("");
    start += strlen(name);
    for (stop = start; *stop && *stop != '"'; stop++)
        if (*stop == '\\' && stop[1])
            stop++;
    return strndup(start, (size_t)(stop - start));
}

static void shake_hands(void) {
    char message[64], *folder;
    receive();
    folder = text_of(line, "\"pidDir\":\"");
    char *path = malloc(strlen(folder) + 32);
    sprintf(path, "%s/%ld", folder, (long)getpid());
    FILE *file = fopen(path, "w");
    if (file)
        fclose(file);
    free(path);
    free(folder);
    sprintf(message, "{\"pid\": %ld}", (long)getpid());
    send_message(message);
}

/* --- the bolt --- */

static void shout(char *word) {
    for (char *c = word; *c; c++)
        if (*c == '\\') {      /* \uXXXX and the like stay as they are */
            if (*++c == 'u')
                c += 4;
        } else
            *c = (char)toupper((unsigned char)*c);
}

int main(void) {
    shake_hands();
    for (;;) {
        receive();
        if (*line == '[')       /* task ids, which nobody here asks for */
            continue;
        char *stream = text_of(line, "\"stream\":\"");
        if (!strcmp(stream, "__heartbeat"))
            send_message("{\"command\": \"sync\"}");
        else {
            char *id = text_of(line, "\"id\":\""), *word = text_of(line, "\"tuple\":[\"");
            shout(word);
            printf("{\"command\": \"emit\", \"anchors\": [\"%s\"], \"tuple\": [\"%s\"], "
                   "\"need_task_ids\": false}\nend\n", id, word);
            printf("{\"command\": \"ack\", \"id\": \"%s\"}\nend\n", id);
            fflush(stdout);
            free(id);
            free(word);
        }
        free(stream);
    }
}
