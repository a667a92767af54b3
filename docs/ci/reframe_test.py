"""A ReFrame test that is judged by `gammachi check`: no reference values to retune by hand.

The baseline is a folder beside this file. With GAMMACHI_ADD=1 in the environment the runs are added to it.

    reframe -c reframe_test.py -r
"""
import os

import reframe as rfm
import reframe.utility.sanity as sn

HERE = os.path.dirname(os.path.abspath(__file__))


@rfm.simple_test
class JacobiPerformance(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    runs = variable(int, value=5)
    at_most = variable(str, value='5%')
    baseline = variable(str, value=os.path.join(HERE, 'perf'))
    sourcesdir = None  # The stage may lie in this folder: it is not copied as a whole.
    local = True

    prerun_cmds = [
        f'cp {HERE}/jacobi.c {HERE}/run-once .',
        # gammachi.h lies beside the installed command.
        '${MPICC:-mpicc} -O2 -g -I"$(dirname "$(command -v gammachi)")/../include" -o jacobi jacobi.c',
    ]
    executable = './run-once'

    @run_before('run')
    def measure(self):
        action = 'check --add' if os.environ.get('GAMMACHI_ADD') else f'check --at-most {self.at_most}'
        self.executable_opts = ['gammachi', 'run', '--out', 'new-1.gammachi', '--']
        self.postrun_cmds = [
            f'for number in $(seq 2 {self.runs}); do ./run-once gammachi run --out new-$number.gammachi --; done',
            f'gammachi {action} new-*.gammachi --baseline {self.baseline}; echo "gammachi: $?"',
        ]

    @sanity_function
    def not_slower(self):
        # 0: fine; 4: runs scatter too much, which is for a person to look at.
        return sn.assert_found(r'^gammachi: [04]$', self.stdout, 'slower: see the output')
