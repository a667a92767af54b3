/* A plug-in as large as plugin_omega.c, so that one can be loaded where the other one was. */
#include "victim.h"

static void alpha_solver(void) { call_comm_rank(1); }

void plugin_call(void) { alpha_solver(); }
