import { UsageError } from '@keelson/core/internal';
import { noMetrics, ServiceHost, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import { loadControllers } from '../config/load-modules.ts';
import { type LogLevel, optionTable } from '../config/options.ts';
import { chooseControllers } from '../control-plane/controller-choice.ts';
import { controllerServices } from '../control-plane/controllers.ts';
import { processAnchor } from '../control-plane/plane-services.ts';
import { type ApiCommand, apiOptions, commandHelp, connect, parseFlags } from './api-command.ts';

/** The controllers that no server runs by default. */
const defaultNames = ['*', '-api'];
/** Controllers that run in servers only, each with what the server has and this command does not. */
const inServers = new Map([
  ['certificatesigningrequest-signing-controller', 'the key of the authority'],
  ['validatingadmissionpolicy-status-controller', 'the schemas of all kinds'],
  ['serviceaccount-token-controller', 'the key that signs tokens'],
]);

const command: ApiCommand = {
  name: 'keelson controllers',
  synopsis: `keelson controllers [options]

Runs controllers and the scheduler in a process of their own, as clients of a running server. Of several such
processes, and servers that run the same controllers, one is elected; when it ends, another takes over at once, and
within 15 s when it was killed.
`,
  options: [
    ...apiOptions,
    ...optionTable.flatMap((row) => {
      if (row.name === 'controllers') return [{ ...row, shownDefault: defaultNames.join(',') }];
      return row.name === 'logLevel' ? [row] : [];
    }),
  ],
};

/** Environment, output and termination of the process that runs `keelson controllers`. */
export interface ControllersIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: (text: string) => void;
  readonly terminated: Promise<void>;
}

/** Runs `keelson controllers` until the process is terminated. @throws UsageError */
export async function controllersCommand(words: readonly string[], io: ControllersIo): Promise<void> {
  const { values, help } = parseFlags(words, io.env, command);
  if (help) {
    io.stdout(commandHelp(command));
    return;
  }
  const names = (values['controllers'] as readonly string[] | undefined) ?? defaultNames;
  const choice = chooseControllers(await loadControllers(names), '--controllers');
  for (const [name, key] of inServers)
    if (names.includes(name)) throw new UsageError(`--controllers: ${name} runs in servers only, which have ${key}`);
  const { clientOf, server, authority } = await connect(values);
  const clock = systemClock;
  const logger = createPinoLogger(values['logLevel'] as LogLevel);
  // A kubeconfig without an authority is that of a server without authentication, which has no service accounts.
  const credentials = authority === undefined ? {} : { serviceAccounts: { certificateAuthority: () => authority } };
  const clients: ReturnType<typeof clientOf>[] = [];
  const context = {
    ...{ clock, logger, metrics: noMetrics },
    clientOf: (userAgent: string) => {
      const client = clientOf(userAgent);
      clients.push(client);
      return client;
    },
  };
  const services = controllerServices(choice, context, credentials, true);
  const host = new ServiceHost([processAnchor(), ...services], clock, logger);
  try {
    await host.start();
    io.stdout(`keelson: running controllers for ${server}\n`);
    await io.terminated;
  } finally {
    await host.stop();
    for (const client of clients) client.close();
  }
}
