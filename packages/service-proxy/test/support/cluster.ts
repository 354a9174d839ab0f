import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createInProcessClient, type EventRecorder } from '@keelson/client';
import type { ApiClient } from '@keelson/core';
import { createCachedStorages, createContinueTokens, createResourceRegistry } from '@keelson/core/internal';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { builtinKinds, EndpointSlice, Service } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import type { ExecutionContext } from 'ava';
import { ServiceTable } from '../../src/index.ts';

/** An address of this machine that endpoints may have: none of the loopback interface. */
export const machineAddress = Object.values(networkInterfaces())
  .flatMap((entries) => entries ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

export interface Cluster {
  readonly api: ApiClient;
  readonly table: ServiceTable;
  /** Recorded events: reason and message. */
  readonly recorded: string[];
  readonly events: EventRecorder;
}

/** An API in the test process without controllers, and the table of its services. */
export async function cluster(t: ExecutionContext): Promise<Cluster> {
  const clock = systemClock;
  const store = new MemoryStore({ clock });
  await store.ready();
  const storages = createCachedStorages({ store, clock });
  await storages.start();
  const registry = createResourceRegistry({
    storages,
    tokens: createContinueTokens({ secret: Buffer.alloc(32, 7), fingerprint: 'test', clock }),
    ...{ clock, logger: silentLogger, admission: [], kinds: builtinKinds },
  });
  const api = createInProcessClient(registry, { clock });
  const table = new ServiceTable({ client: api, clock, logger: silentLogger });
  await table.start();
  t.teardown(async () => {
    await table.stop();
    await storages.stop();
    await store.close();
  });
  const recorded: string[] = [];
  const events: EventRecorder = {
    record: ({ name }, _type, reason, message) => recorded.push(`${name} ${reason} ${message}`),
  };
  return { api, table, recorded, events };
}

export interface EndpointOptions {
  readonly port: number;
  readonly portName?: string;
  readonly protocol?: string;
  readonly addresses?: readonly string[];
  readonly nodeName?: string;
  readonly hostname?: string;
}

/** Writes a service and its only slice. */
export async function addService(
  { api }: Cluster,
  name: string,
  spec: Service['spec'],
  endpoints: readonly EndpointOptions[],
): Promise<void> {
  await api.resource(Service).namespace('default').create({ metadata: { name }, spec });
  const slices = api.resource(EndpointSlice).namespace('default');
  for (const [i, one] of endpoints.entries()) {
    const { port, portName = '', protocol = 'TCP', addresses = [machineAddress ?? ''], nodeName, hostname } = one;
    await slices.create({
      metadata: { name: `${name}-${i}`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [
        {
          addresses: [...addresses],
          conditions: { ready: true },
          ...(nodeName ? { nodeName } : {}),
          ...(hostname ? { hostname } : {}),
        },
      ],
      ports: [{ name: portName, port, protocol }],
    });
  }
}

/** Listens on a free port of the machine. */
export async function listen(t: ExecutionContext, server: Server): Promise<number> {
  server.listen(0, machineAddress);
  await once(server, 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}
