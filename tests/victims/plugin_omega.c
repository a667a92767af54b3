/* A plug-in as large as plugin_alpha.c, so that one can be loaded where the other one was. */
#include "victim.h"

static void omega_writer(void) { call_comm_rank(1); }

void plugin_call(void) { omega_writer(); }
