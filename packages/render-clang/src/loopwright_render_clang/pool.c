/* A pool of threads that runs the parts of one kernel launch.

   One launch at a time: a second thread that launches meanwhile runs its parts by itself. Parts
   are claimed from a ticket, so the launching thread never waits for a worker that sleeps while
   there is work: it does it. A worker waits for the next ticket a while, then sleeps. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_WORKERS 1023
#define N_PAUSES 2000

typedef void (*entry_t)(void *const *, const long long *, int, void *);

typedef struct {
    entry_t entry;
    void *const *buffers;
    const long long *variables;
    char *scratch;
    long long stride;
} job_t;

/* generation (32 bits) | number of parts (16) | next part (16) */
static _Alignas(64) _Atomic uint64_t ticket;
static _Alignas(64) atomic_int n_done;
static _Alignas(64) atomic_int n_asleep;
static job_t job;
static int n_workers;
static pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t sleeping = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

static inline void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void run_part(const job_t *j, int part) {
    j->entry(j->buffers, j->variables, part, j->scratch ? j->scratch + part * j->stride : 0);
}

/* Claims and runs parts of that generation until none is left. */
static void work(uint32_t generation) {
    uint64_t t = atomic_load(&ticket);
    for (;;) {
        unsigned parts = (t >> 16) & 0xffff, next = t & 0xffff;
        if ((uint32_t)(t >> 32) != generation || next >= parts) return;
        if (!atomic_compare_exchange_weak(&ticket, &t, t + 1)) continue;
        /* A claimed part is not done, so the launch still waits and `job` is its own. */
        job_t mine = job;
        run_part(&mine, (int)next);
        atomic_fetch_add(&n_done, 1);
        t = atomic_load(&ticket);
    }
}

static uint32_t current(void) { return (uint32_t)(atomic_load(&ticket) >> 32); }

static void *worker(void *first) {
    uint32_t seen = (uint32_t)(uintptr_t)first;
    for (;;) {
        for (int i = 0; i < N_PAUSES && current() == seen; i++) pause_cpu();
        if (current() == seen) {
            pthread_mutex_lock(&sleeping);
            atomic_fetch_add(&n_asleep, 1);
            while (current() == seen) pthread_cond_wait(&wake, &sleeping);
            atomic_fetch_sub(&n_asleep, 1);
            pthread_mutex_unlock(&sleeping);
        }
        seen = current();
        work(seen);
    }
    return 0;
}

/* The threads of the parent do not exist in a child, nor do its locks' owners. */
static void forget(void) {
    n_workers = 0;
    atomic_store(&n_asleep, 0);
    atomic_store(&n_done, 0);
    pthread_mutex_init(&launching, 0);
    pthread_mutex_init(&sleeping, 0);
    pthread_cond_init(&wake, 0);
}

static void grow(int wanted, uint32_t generation) {
    static int is_registered;
    if (!is_registered) {
        pthread_atfork(0, 0, forget);
        is_registered = 1;
    }
    if (wanted > MAX_WORKERS) wanted = MAX_WORKERS;
    if (n_workers >= wanted) return;
    /* Signals are for the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, 1 << 20);
    while (n_workers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, worker, (void *)(uintptr_t)generation)) break;
        n_workers++;
    }
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, 0);
}

/* Runs entry(buffers, variables, part, scratch of part) for every part 0 .. parts-1. */
EXPORT void loopwright_pool_run(entry_t entry, void *const *buffers, const long long *variables,
                                int parts, char *scratch, long long stride) {
    job_t mine = {entry, buffers, variables, scratch, stride};
    if (parts == 1 || parts > 0xffff || pthread_mutex_trylock(&launching)) {
        for (int part = 0; part < parts; part++) run_part(&mine, part);
        return;
    }
    uint32_t generation = current();
    grow(parts - 1, generation);
    job = mine;
    atomic_store(&n_done, 0);
    generation++;
    atomic_store(&ticket, (uint64_t)generation << 32 | (uint64_t)parts << 16);
    if (atomic_load(&n_asleep)) {
        pthread_mutex_lock(&sleeping);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&sleeping);
    }
    work(generation);
    for (int i = 0; atomic_load(&n_done) < parts; i++) {
        if (i < N_PAUSES * 10) pause_cpu();
        else sched_yield();
    }
    pthread_mutex_unlock(&launching);
}

/* One launch of a sequence: which arrays and variables of the call are its own. Behind its arrays
   it is given those that lie in the scratch memory, at these offsets. */
typedef struct {
    entry_t entry;
    const int *rows;
    const int *variables;
    const long long *shared;
    int n_rows, n_variables, n_shared, parts;
    long long stride;
} launch_t;

/* Runs launches in order over one table of arrays. n_most: the most arrays or variables of one. */
EXPORT void loopwright_sequence_run(const launch_t *launches, int n, int n_most,
                                    void *const *table, const long long *variables,
                                    char *scratch) {
    void *buffers[n_most];
    long long values[n_most];
    for (int k = 0; k < n; k++) {
        const launch_t *l = &launches[k];
        for (int i = 0; i < l->n_rows; i++) buffers[i] = table[l->rows[i]];
        for (int i = 0; i < l->n_shared; i++) buffers[l->n_rows + i] = scratch + l->shared[i];
        for (int i = 0; i < l->n_variables; i++) values[i] = variables[l->variables[i]];
        if (l->parts == 1) l->entry(buffers, values, 0, scratch);
        else loopwright_pool_run(l->entry, buffers, values, l->parts, scratch, l->stride);
    }
}

/* How many threads wait for work. */
EXPORT int loopwright_pool_workers(void) { return n_workers; }
