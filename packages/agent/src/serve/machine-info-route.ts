import { readMachineInfo } from '../machine/stats/machine-info.ts';
import { sendJson } from './http/request.ts';
import type { Route } from './http/route.ts';

/** `/spec/`: the hardware of the host. */
export const specRoute: Route = {
  first: 'spec',
  methods: ['GET'],
  readOnlyPort: true,
  async serve({ response }) {
    sendJson(response, await readMachineInfo());
  },
};
