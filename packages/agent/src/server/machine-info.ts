import { readMachineInfo } from '../stats/machine-info.ts';
import { sendJson } from './request.ts';
import type { Route } from './route.ts';

/** `/spec/`: what the machine has. */
export const specRoute: Route = {
  first: 'spec',
  methods: ['GET'],
  readOnlyPort: true,
  async serve({ response }) {
    sendJson(response, await readMachineInfo());
  },
};
