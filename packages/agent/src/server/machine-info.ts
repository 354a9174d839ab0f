import { readFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { sendJson } from './request.ts';
import type { Route } from './route.ts';

async function line(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(() => '')).trim();
}

/** `/spec/`: what the machine has. */
export const specRoute: Route = {
  first: 'spec',
  methods: ['GET'],
  readOnlyPort: true,
  async serve({ response }) {
    sendJson(response, {
      num_cores: cpus().length,
      memory_capacity: totalmem(),
      machine_id: await line('/etc/machine-id'),
      boot_id: await line('/proc/sys/kernel/random/boot_id'),
    });
  },
};
