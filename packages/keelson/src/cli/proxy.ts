import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemHost } from '@keelson/agent';
import { ApiEventRecorder } from '@keelson/client';
import { oneOf, text } from '@keelson/core/internal';
import { noMetrics, type Service, ServiceHost, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import { ServiceProxy, ServiceRules, ServiceTable } from '@keelson/service-proxy';
import { type LogLevel, optionTable } from '../config/options.ts';
import { processAnchor } from '../control-plane/plane-services.ts';
import { type ApiCommand, apiOptions, commandHelp, connect, parseFlags } from './api-command.ts';
import type { ControllersIo } from './controllers.ts';

const modes = ['userspace', 'iptables'] as const;

const command: ApiCommand = {
  name: 'keelson proxy',
  synopsis: `keelson proxy [options]

Serves the cluster IPs and node ports of services on one node, as a client of a running server. The mode userspace
listens on the addresses, which must be addresses of the machine; iptables writes rules of the packet filter, for pods
with a network of their own, and requires root. The rules are removed at the end.
`,
  options: [
    ...apiOptions,
    {
      name: 'mode',
      flag: '--mode',
      type: oneOf('MODE', modes),
      default: 'userspace',
      help: modes.join(' | '),
    },
    {
      name: 'node',
      flag: '--node',
      type: text,
      default: undefined,
      shownDefault: 'the host name',
      help: 'name of the node of this machine, for the traffic policy Local',
    },
    ...optionTable.filter(({ name }) => name === 'logLevel'),
  ],
};

/** Runs `keelson proxy` until the process is terminated. @throws UsageError */
export async function proxyCommand(words: readonly string[], io: ControllersIo): Promise<void> {
  const { values, help } = parseFlags(words, io.env, command);
  if (help) {
    io.stdout(commandHelp(command));
    return;
  }
  const { client, server } = await connect(values);
  const logger = createPinoLogger(values['logLevel'] as LogLevel);
  const nodes = new Set([(values['node'] as string | undefined) ?? hostname().trim().toLowerCase()]);
  const context = { client, clock: systemClock, logger, localNodes: () => nodes };
  const events = new ApiEventRecorder({ ...context, qps: 5, burst: 50, source: { component: 'service-proxy' } });
  const services = new ServiceTable(context);
  const directory = await mkdtemp(join(tmpdir(), 'keelson-proxy-'));
  const proxy: Service =
    values['mode'] === 'iptables'
      ? new ServiceRules({ ...context, table: services, host: systemHost(), directory })
      : new ServiceProxy({ ...context, table: services, events, metrics: noMetrics });
  const host = new ServiceHost([processAnchor(), services, proxy], systemClock, logger);
  try {
    await host.start();
    io.stdout(`keelson: serving services of ${server}\n`);
    await io.terminated;
  } finally {
    await host.stop();
    await events.stop();
    client.close();
    await rm(directory, { recursive: true, force: true });
  }
}
