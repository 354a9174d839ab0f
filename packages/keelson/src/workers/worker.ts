import { once } from 'node:events';
import { MessageChannel, type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type AuditSink, eventBytes } from '@keelson/access';
import { UsageError } from '@keelson/core/internal';
import { type Metrics, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import { createPlane } from '../control-plane/create-control-plane.ts';
import { routeLibraryOutput } from '../observe/library-output.ts';
import { createPromMetrics } from '../observe/prom-metrics.ts';
import { listenOptions, planeOptions, type ServerContext, telemetryOf } from './server-context.ts';
import { WorkerStore } from './worker-store.ts';
import type { WorkerMessage, WorkerReport, WorkerStart } from './worker-threads.ts';

/** The entry of a worker thread: a server that accepts connections of the socket of the main thread. */
async function run(main: MessagePort, start: WorkerStart): Promise<void> {
  const { options, credentials, delegated, advertiseAddress, controllers, descriptor, stores } = start;
  const logger = createPinoLogger(options.logLevel);
  routeLibraryOutput(logger, systemClock);
  const report = (message: WorkerReport, transfer: (MessagePort | ArrayBuffer)[] = []) =>
    main.postMessage(message, transfer);
  const own = createPromMetrics();
  const shared: Metrics = {
    ...own,
    text: async () => {
      const { port1, port2 } = new MessageChannel();
      report({ type: 'metrics', port: port2 }, [port2]);
      const [text] = (await once(port1, 'message')) as [string];
      port1.close();
      return text;
    },
  };
  const { metrics, ...tracing } = await telemetryOf(options, shared);
  let current = credentials;
  const context: ServerContext = {
    ...{ options, logger, metrics, credentials, delegated, advertiseAddress, controllers },
    current: () => current,
    agentClient: undefined,
    localAgents: new Map(),
  };
  try {
    const plane = await createPlane(
      { ...(await planeOptions(context)), ...tracing, controllers: false },
      {
        wrapStore: (name, store) => {
          const access = stores.get(name);
          return access === undefined ? store : new WorkerStore(access);
        },
        auditLog: forwardedLog((lines) => report({ type: 'audit', lines }, [lines.buffer])),
        controllers,
        socket: { descriptor },
      },
    );
    const listening = await plane.listen(await listenOptions(context));
    main.on('message', (message: WorkerMessage) => {
      if (message.type === 'credentials') {
        current = message.credentials;
        listening.setCredentials(message.credentials);
      } else if (message.type === 'metrics') {
        void own.families().then((families) => message.port.postMessage(families));
      } else {
        void plane.close().finally(() => process.exit());
      }
    });
    report({ type: 'listening' });
  } catch (error) {
    report({ type: 'failed', message: (error as Error).message, usage: error instanceof UsageError });
  }
}

/** Time for which lines of the audit log are collected, in milliseconds. */
const collectMs = 25;
const collectBytes = 64 * 1024;

/** An audit log that passes its lines on to the main thread, which writes one file for all threads. */
function forwardedLog(forward: (lines: Uint8Array<ArrayBuffer>) => void): AuditSink {
  let lines: Buffer[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length === 0) return;
    const joined = new Uint8Array(bytes - 1);
    let end = 0;
    for (const line of lines) {
      if (end > 0) joined[end++] = 0x0a;
      joined.set(line, end);
      end += line.length;
    }
    lines = [];
    bytes = 0;
    forward(joined);
  };
  return {
    inBackground: true,
    add: (event) => {
      lines.push(eventBytes(event));
      bytes += event.byteLength + 1;
      if (bytes >= collectBytes) flush();
      // Not injected: the delay only determines how many lines are one message.
      else timer ??= setTimeout(flush, collectMs);
      return true;
    },
    close: async () => flush(),
  };
}

if (parentPort !== null) await run(parentPort as MessagePort, workerData as WorkerStart);
