import { loadObjects, morePods, podsPath } from './load-objects.ts';
import type { Scenario } from './scenario.ts';

/** At most so many, and four times what else is loaded in a short run. */
const most = 40_000;
const rounds = 3;
/** After so long without work V8 gives back what it does not need (its memory reducer begins after eight seconds). */
const quietMs = 12_000;

export const memoryPerObject: Scenario = {
  name: 'memory per object',
  what: 'growth of resident memory per cached pod, behind a server that has a quarter of them already (a list of all was read; on memory the store itself is in it, on LMDB mapped files are not), beside its bytes as JSON',
  goal: { form: 'times', mark: 2 },
  everyAdapter: true,
  run: async (stage) => {
    const objects = Math.min(most, 4 * stage.objects);
    const quiet = () => new Promise((resolve) => setTimeout(resolve, Math.min(quietMs, objects)));
    const measured = [];
    for (let round = 0; round < Math.min(rounds, stage.rounds); round += 1) {
      const server = await stage.start([]);
      const list = async () =>
        (await (await fetch(`http://127.0.0.1:${server.port}${podsPath}`)).arrayBuffer()).byteLength;
      await loadObjects(stage.load, server.port, objects / 4);
      const first = await list();
      await quiet();
      const before = server.memory();
      await morePods(stage.load, server.port, objects);
      const bytes = (await list()) - first;
      await quiet();
      measured.push({ floor: bytes / objects, subject: (server.memory() - before) / objects });
      await server.stop();
      stage.progress(`round ${round + 1} of ${rounds}`);
    }
    return { unit: 'bytes per object', rounds: measured, leastRounds: rounds, notes: { objects } };
  },
};
