import { loadObjects, podsPath } from './load-objects.ts';
import type { Scenario } from './scenario.ts';

const objects = 40_000;

export const memoryPerObject: Scenario = {
  name: 'memory per object',
  what: 'growth of resident memory per cached pod (one list read included), beside its bytes as JSON',
  goal: { form: 'times', mark: 2 },
  everyAdapter: false,
  run: async (stage) => {
    const rounds = [];
    for (let round = 0; round < 3; round += 1) {
      const server = await stage.start([]);
      const before = server.memory();
      await loadObjects(stage.load, server.port, objects);
      const body = await (await fetch(`http://127.0.0.1:${server.port}${podsPath}`)).arrayBuffer();
      // Memory that only served the requests goes back to the system within seconds of quiet.
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      rounds.push({ floor: body.byteLength / objects, subject: (server.memory() - before) / objects });
      await server.stop();
      stage.progress(`round ${round + 1} of 3`);
    }
    return { unit: 'bytes per object', rounds, notes: { objects } };
  },
};
