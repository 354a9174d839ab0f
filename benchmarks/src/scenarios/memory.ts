import { loadObjects, podsPath } from './load-objects.ts';
import type { Scenario } from './scenario.ts';

/** Enough of them that what a server has anyway does not show: at most 40,000, and four times what else is loaded in a short run. */
const most = 40_000;
const rounds = 5;
const quietMs = 5_000;

export const memoryPerObject: Scenario = {
  name: 'memory per object',
  what: 'growth of resident memory per cached pod (one list read included), beside its bytes as JSON',
  goal: { form: 'times', mark: 2 },
  everyAdapter: false,
  run: async (stage) => {
    const objects = Math.min(most, 4 * stage.objects);
    const measured = [];
    for (let round = 0; round < Math.min(rounds, stage.rounds); round += 1) {
      const server = await stage.start([]);
      const before = server.memory();
      await loadObjects(stage.load, server.port, objects);
      const body = await (await fetch(`http://127.0.0.1:${server.port}${podsPath}`)).arrayBuffer();
      // Memory that only served the requests goes back to the system within seconds of quiet.
      await new Promise((resolve) => setTimeout(resolve, Math.min(quietMs, objects / 8)));
      measured.push({ floor: body.byteLength / objects, subject: (server.memory() - before) / objects });
      await server.stop();
      stage.progress(`round ${round + 1} of ${rounds}`);
    }
    return { unit: 'bytes per object', rounds: measured, notes: { objects } };
  },
};
