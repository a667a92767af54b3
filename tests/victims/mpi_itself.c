/* Prints everything that MPI returns about itself and this process: states, thread levels, error classes and
   handlers, attributes, statuses, results of reductions, MPI_T, floating-point environment, environment
   variables. Two ranks; the one named by the argument prints. */
#define _GNU_SOURCE
#include "victim.h"

#include <fenv.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>

extern char **environ;
static int speaks, rank, other;

static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (speaks)
        vprintf(format, arguments);
    va_end(arguments);
}

static void say_states(const char *when)
{
    int initialized = -1, finalized = -1;
    int a = MPI_Initialized(&initialized), b = MPI_Finalized(&finalized);
    say("%s: initialized %d %d finalized %d %d\n", when, a, initialized, b, finalized);
}

static void say_floating_point(const char *when)
{
    say("%s: rounding %d, exceptions %x %x\n", when, fegetround(),
        (unsigned)fetestexcept(FE_ALL_EXCEPT), (unsigned)fegetexcept());
}

static void say_environment(const char *when)
{
    /* Skips variables of the recorder and of launchers, and others that differ between starts. */
    static const char *own[] = {"GAMMACHI_", "LD_PRELOAD=", "PMIX_", "PMI_", "OMPI_", "PRTE_", "HYDI_",
                                "HYDRA_", "MPIR_", "PRRTE_", "_=", "PALS_", "I_MPI_HYDRA", "I_MPI_"};
    int count = 0;
    for (char **variable = environ; *variable; variable++) {
        int is_own = 0;
        for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
            is_own |= strncmp(*variable, own[i], strlen(own[i])) == 0;
        if (!is_own) {
            say("%s: %s\n", when, *variable);
            count++;
        }
    }
    say("%s: %d variables\n", when, count);
}

static void say_signals(const char *when)
{
    sigset_t blocked;
    struct rlimit limit = {0, 0};
    int set = 0;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < 32; number++)
        set += sigismember(&blocked, number) == 1;
    getrlimit(RLIMIT_CORE, &limit);
    say("%s: %d signals blocked, core limit %ld, umask %o\n", when, set, (long)limit.rlim_cur, umask(022));
}

static void say_error(const char *what, int code)
{
    int class = -1, length = -1;
    char text[MPI_MAX_ERROR_STRING];
    memset(text, 0, sizeof text);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    say("%s: class %d success %d length %d %s\n", what, class, code == MPI_SUCCESS, length, text);
}

static void say_attribute(const char *what, MPI_Comm comm, int keyval)
{
    int flag = -1, *value = NULL;
    int code = MPI_Comm_get_attr(comm, keyval, &value, &flag);
    say("%s: %d flag %d value %d\n", what, code, flag, flag && value ? *value : 0);
}

static int copied, deleted;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra;
    copied++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
    int class = -1;
    (void)comm;
    MPI_Error_class(*code, &class);
    handled = class;
}

static void say_errors(void)
{
    static int value; /* in an executable at a fixed address, because error texts contain its address */
    int code, class = 0, made = 0;
    MPI_Errhandler own, now;
    for (int class = 0; class <= MPI_ERR_LASTCODE && class < 120; class++) {
        char text[MPI_MAX_ERROR_STRING];
        int length = -1;
        code = MPI_Error_string(class, text, &length);
        say("class %d: %d %.*s\n", class, code, length > 0 ? length : 0, text);
    }
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
    say("handler at first: fatal %d\n", now == MPI_ERRORS_ARE_FATAL);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    code = MPI_Send(&value, 1, MPI_INT, 99, 1, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    say("own handler: class %d returned %d\n", handled, class);
    MPI_Errhandler_free(&own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say_error("bad count", MPI_Send(&value, -1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    say_error("bad tag", MPI_Send(&value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD));
    say_error("bad root", MPI_Bcast(&value, 1, MPI_INT, 99, MPI_COMM_WORLD));
    say_error("bad datatype", MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD));
    say_error("bad operation", MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
    code = MPI_Add_error_class(&made);
    say("class added: %d past the last %d\n", code, made > MPI_ERR_LASTCODE - 1);
    MPI_Add_error_string(made, "of our own");
    say_error("own class", made);
}

static void say_attributes(void)
{
    int keyval = MPI_KEYVAL_INVALID, flag = -1;
    void *value = NULL;
    MPI_Comm twin;
    say_attribute("tag_ub", MPI_COMM_WORLD, MPI_TAG_UB);
    say_attribute("io", MPI_COMM_WORLD, MPI_IO);
    say_attribute("wtime_is_global", MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL);
    say_attribute("universe_size", MPI_COMM_WORLD, MPI_UNIVERSE_SIZE);
    say_attribute("appnum", MPI_COMM_WORLD, MPI_APPNUM);
    say_attribute("lastusedcode", MPI_COMM_WORLD, MPI_LASTUSEDCODE);
    say("keyval %d\n", MPI_Comm_create_keyval(copy, delete, &keyval, NULL));
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &keyval);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_get_attr(twin, keyval, &value, &flag);
    say("copied %d, deleted %d, on the twin %d %d\n", copied, deleted, flag, value == &keyval);
    MPI_Comm_free(&twin);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    say("copied %d, deleted %d\n", copied, deleted);
    MPI_Comm_free_keyval(&keyval);
    say("keyval invalid %d\n", keyval == MPI_KEYVAL_INVALID);
}

static void say_reductions(void)
{
    double in[8], out[8];
    float small[3] = {0.1f, 0.2f, 0.3f}, sum[3];
    MPI_Op operations[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    for (int i = 0; i < 8; i++)
        in[i] = (rank + 1) * 0.1 + i / 3.0;
    for (int which = 0; which < 4; which++) {
        MPI_Allreduce(in, out, 8, MPI_DOUBLE, operations[which], MPI_COMM_WORLD);
        for (int i = 0; i < 8; i++)
            say("reduction %d: %a\n", which, out[i]);
    }
    MPI_Scan(small, sum, 3, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    say("scan: %a %a %a\n", sum[0], sum[1], sum[2]);
    struct {
        double value;
        int index;
    } place = {rank * 2.5, rank}, most = {0, -1};
    MPI_Allreduce(&place, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    say("maxloc: %a %d\n", most.value, most.index);
}

static void say_messages(void)
{
    int value = 4, got[4] = {0}, count = -1, flag = -1;
    MPI_Status status;
    MPI_Request request;
    memset(&status, 0x5a, sizeof status);
    int code = MPI_Sendrecv(&value, 1, MPI_INT, other, 3, got, 4, MPI_INT, other, MPI_ANY_TAG,
                            MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_Test_cancelled(&status, &flag);
    say("sendrecv: %d source %d tag %d count %d cancelled %d\n", code, status.MPI_SOURCE,
        status.MPI_TAG, count, flag);
    MPI_Irecv(got, 4, MPI_INT, other, 55, MPI_COMM_WORLD, &request);
    code = MPI_Test(&request, &flag, &status);
    say("test: %d %d\n", code, flag);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    say("cancelled %d null %d\n", flag, request == MPI_REQUEST_NULL);
    code = MPI_Recv(got, 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    say("from nobody: %d source %d tag %d\n", code, status.MPI_SOURCE == MPI_PROC_NULL,
        status.MPI_TAG == MPI_ANY_TAG);
}

static void say_tool_interface(void)
{
    int provided = -1, control = -1, performance = -1, categories = -1;
    int code = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    say("MPI_T: %d provided %d\n", code, provided);
    if (code != MPI_SUCCESS)
        return;
    MPI_T_cvar_get_num(&control);
    MPI_T_pvar_get_num(&performance);
    MPI_T_category_get_num(&categories);
    say("MPI_T: %d control variables, %d performance variables, %d categories\n", control, performance,
        categories);
    for (int which = 0; which < control && which < 40; which++) {
        char name[256] = "", text[256] = "";
        int name_bytes = sizeof name, text_bytes = sizeof text, verbosity = -1, binding = -1, scope = -1;
        MPI_Datatype datatype;
        MPI_T_enum values;
        code = MPI_T_cvar_get_info(which, name, &name_bytes, &verbosity, &datatype, &values, text,
                                   &text_bytes, &binding, &scope);
        say("MPI_T: %d %s %d %d %d\n", code, name, verbosity, binding, scope);
    }
    /* Not finalized: before MPI_Finalize MPICH 4.3 crashes in later calls, after it Open MPI 4.1 does. */
}

int main(int argc, char **argv)
{
    int provided = -1, major = 0, minor = 0, length = 0, main_thread = -1, level = -1;
    char text[MPI_MAX_LIBRARY_VERSION_STRING], name[MPI_MAX_PROCESSOR_NAME];
    speaks = argc < 2; /* the printing rank is known after MPI_Init; before it all ranks are silent */
    say_states("before");
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    int code = MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    int rounding = fegetround();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    speaks = argc < 2 || atoi(argv[1]) == rank;
    other = 1 - rank;
    say("init %d, provided %d, rounding kept %d, argc %d\n", code, provided, rounding == FE_UPWARD, argc);
    fesetround(FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
    say_states("between");
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&main_thread);
    say("level %d main %d\n", level, main_thread);
    MPI_Get_version(&major, &minor);
    MPI_Get_library_version(text, &length);
    say("MPI %d.%d, length %d: %s\n", major, minor, length, text);
    MPI_Get_processor_name(name, &length);
    say("processor %s %d\n", name, length);
    say_environment("environment");
    say_signals("signals");
    say_floating_point("after start");
    say_errors();
    say_attributes();
    say_reductions();
    say_messages();
    say_tool_interface();
    feraiseexcept(FE_INEXACT);
    MPI_Barrier(MPI_COMM_WORLD);
    say_floating_point("after calls");
    errno = 4711;
    MPI_Barrier(MPI_COMM_WORLD);
    say("null calls: %d %d\n", MPI_Request_free(&(MPI_Request){MPI_REQUEST_NULL}) != MPI_SUCCESS,
        MPI_Comm_free(&(MPI_Comm){MPI_COMM_NULL}) != MPI_SUCCESS);
    code = MPI_Finalize();
    say("finalize %d\n", code);
    say_states("after");
    say_signals("signals");
    return 0;
}
