import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Scenario } from '../scenarios/scenario.ts';

const program = fileURLToPath(new URL('./schedule-work.js', import.meta.url));
const run = promisify(execFile);
const nodes = 100;

/** What `schedule-work` prints. */
interface Work {
  readonly floor: number;
  readonly cpu: number;
  readonly seconds: number;
  readonly heapBytes: number;
}

const scenario = (name: string, kind: 'plain' | 'rules', what: string, mark: number): Scenario => ({
  name,
  what,
  goal: { form: 'times', mark },
  everyAdapter: false,
  run: async (stage) => {
    const pods = Math.ceil(stage.objects / 2);
    const rounds = [];
    let last: Work | undefined;
    for (let round = 0; round < stage.rounds; round += 1) {
      const words = ['--expose-gc', program, `${nodes}`, `${pods}`, kind];
      const { stdout } = await run(process.execPath, words, { timeout: 120_000 });
      last = JSON.parse(stdout) as Work;
      rounds.push({ floor: (1e6 * last.floor) / pods, subject: (1e6 * last.cpu) / pods });
      stage.progress(`round ${round + 1} of ${stage.rounds}`);
    }
    const { cpu = 0, seconds = 0, heapBytes = 0 } = last ?? {};
    const notes = {
      'pods per CPU second': Math.round(pods / cpu),
      'pods per second': Math.round(pods / seconds),
      'heap bytes per pod': Math.round(heapBytes / pods),
    };
    return { unit: 'µs CPU a pod', rounds, notes };
  },
});

export const schedulePods = scenario(
  'schedule',
  'plain',
  `CPU of the scheduler for 5,000 pods of 100 owners on ${nodes} nodes, with bindings and events, beside these writes alone; scheduler and API in one process`,
  4,
);

export const schedulePodsWithRules = scenario(
  'schedule with rules',
  'rules',
  'the same with a required topology spread over zones and a preferred anti-affinity in each pod',
  5,
);
