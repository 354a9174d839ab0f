import { fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { MessageChannel, type MessagePort, type TransferListItem, Worker } from 'node:worker_threads';
import { AuditLog, type AuthenticationOptions, encodedEvent } from '@keelson/access';
import { UsageError } from '@keelson/core/internal';
import { systemClock } from '@keelson/core/runtime';
import { defaultLimits } from '@keelson/http-koa';
import { auditOptions } from '../config/audit-options.ts';
import { connectionLimits } from '../config/connection-limits.ts';
import type { ServerOptions } from '../config/options.ts';
import type { ProcessControllers } from '../control-plane/component-statuses.ts';
import type { PlaneParts } from '../control-plane/create-control-plane.ts';
import { type MetricFamily, metricsText, type PromMetrics } from '../observe/prom-metrics.ts';
import { backlog } from '../server/listen.ts';
import type { Listening } from '../server/listen-options.ts';
import type { Credentials } from '../tls/credentials.ts';
import type { ServerContext } from './server-context.ts';
import { SharedStore } from './shared-store.ts';
import type { StoreAccess } from './store-messages.ts';

/** What a worker thread is started with. */
export interface WorkerStart {
  readonly options: ServerOptions;
  readonly credentials: Credentials | undefined;
  readonly delegated: AuthenticationOptions | undefined;
  readonly advertiseAddress: string;
  readonly controllers: ProcessControllers;
  /** Descriptor of the listening socket that belongs to this worker. */
  readonly descriptor: number;
  /** Access to the stores that only the main thread can open, by name. */
  readonly stores: ReadonlyMap<string, StoreAccess>;
}

/** Messages to a worker. Responses are sent through the port of the message. */
export type WorkerMessage =
  | { readonly type: 'credentials'; readonly credentials: Credentials }
  | { readonly type: 'metrics'; readonly port: MessagePort }
  | { readonly type: 'close' };

/** Messages of a worker. */
export type WorkerReport =
  | { readonly type: 'listening' }
  | { readonly type: 'failed'; readonly message: string; readonly usage: boolean }
  /** Lines for the audit log. */
  | { readonly type: 'audit'; readonly lines: Uint8Array }
  /** Requests the metrics of all threads as text. */
  | { readonly type: 'metrics'; readonly port: MessagePort };

/** The program of a process that sends each socket back that it receives. */
const returned = `process.on('message', (message, handle) => process.send(message, handle))`;

/**
 * Worker threads that accept and serve the connections of one server. Each is a server of its own, as if it ran on
 * another machine: with its own watch cache, authenticators and admission. The main thread opens the stores that only
 * one process can open, and runs the controllers.
 */
export class WorkerThreads {
  readonly #context: ServerContext;
  readonly #metrics: PromMetrics;
  readonly #stores = new Map<string, SharedStore>();
  readonly #workers: Worker[] = [];
  readonly #auditLog: AuditLog | undefined;
  #closing: Promise<void> | undefined;
  #fail: (error: Error) => void = () => {};
  /** Resolves with the reason when a worker has ended unexpectedly. */
  readonly failed = new Promise<Error>((resolve) => {
    this.#fail = resolve;
  });

  /** @throws UsageError for options that exclude workers, and for an audit log that cannot be opened */
  constructor(context: ServerContext, metrics: PromMetrics) {
    this.#context = context;
    this.#metrics = metrics;
    const log = auditOptions(context.options)?.log;
    if (log !== undefined && log.mode !== 'batch')
      throw new UsageError(`--audit-log-mode ${log.mode} excludes --workers; use batch`);
    this.#auditLog = log && new AuditLog(log, { clock: systemClock, logger: context.logger, metrics });
  }

  /** The parts of the main thread's plane that its workers use too. */
  readonly parts: PlaneParts = {
    wrapStore: (name, store) => {
      if (store.capabilities.multiWriter) return store;
      const shared = new SharedStore(store);
      this.#stores.set(name, shared);
      return shared;
    },
  };

  /** Listens on the address of the options and starts the workers. The plane of the main thread must be started. */
  async listen(): Promise<Pick<Listening, 'url' | 'setCredentials'>> {
    const { options, credentials } = this.#context;
    const { host, port } = options.listen;
    const socket = createServer();
    socket.listen({ host, port, backlog });
    await once(socket, 'listening');
    const { port: chosen } = socket.address() as AddressInfo;
    try {
      const descriptors = await duplicates(socket, options.workers);
      await Promise.all(descriptors.map((descriptor) => this.#start(descriptor, chosen)));
    } finally {
      socket.close();
    }
    return {
      url: `${credentials ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${chosen}`,
      setCredentials: (next) => this.#post({ type: 'credentials', credentials: next }),
    };
  }

  /** Ends the workers: each finishes its running requests first. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const ended = this.#workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
    this.#post({ type: 'close' });
    await Promise.all(ended);
    await this.#auditLog?.close();
  }

  #post(message: WorkerMessage): void {
    for (const worker of this.#workers) worker.postMessage(message);
  }

  async #start(descriptor: number, port: number): Promise<void> {
    const { options, delegated, advertiseAddress, controllers } = this.#context;
    const ports: MessagePort[] = [];
    const stores = new Map<string, StoreAccess>();
    for (const [name, store] of this.#stores) {
      const { port1, port2 } = new MessageChannel();
      stores.set(name, { port: port2, ...store.serve(port1) });
      ports.push(port2);
    }
    const workerData: WorkerStart = {
      options: { ...shareOfWorker(options), listen: { ...options.listen, port } },
      ...{ credentials: this.#context.current(), delegated, advertiseAddress, controllers, descriptor, stores },
    };
    const worker = new Worker(new URL(import.meta.resolve('#worker')), {
      workerData,
      transferList: ports as readonly MessagePort[] as TransferListItem[],
    });
    this.#workers.push(worker);
    await new Promise<void>((resolve, reject) => {
      const fail = (error: Error) => {
        reject(error);
        this.#fail(error);
      };
      worker.on('message', (report: WorkerReport) => {
        if (report.type === 'listening') resolve();
        else if (report.type === 'metrics') void this.#answerMetrics(report.port);
        else if (report.type === 'audit') this.#auditLog?.add(encodedEvent(report.lines));
        else fail(report.usage ? new UsageError(report.message) : new Error(report.message));
      });
      worker.on('error', fail);
      worker.on('exit', () => {
        this.#workers.splice(this.#workers.indexOf(worker), 1);
        if (this.#closing === undefined) fail(new Error('a worker thread ended'));
      });
    });
  }

  async #answerMetrics(port: MessagePort): Promise<void> {
    const families = this.#workers.map(async (worker) => {
      const { port1, port2 } = new MessageChannel();
      worker.postMessage({ type: 'metrics', port: port2 } satisfies WorkerMessage, [port2]);
      const [message] = (await once(port1, 'message')) as [readonly MetricFamily[]];
      port1.close();
      return message;
    });
    port.postMessage(await metricsText([await this.#metrics.families(), ...(await Promise.all(families))]));
  }
}

/** The options of one of several workers: limits on the whole server are divided among them. */
export function shareOfWorker(options: ServerOptions): ServerOptions {
  const { workers } = options;
  const part = (total: number) => Math.ceil(total / workers);
  const limits = connectionLimits(options.connectionLimits);
  const { flowControl: flow = {} } = options;
  return {
    ...options,
    connectionLimits: {
      ...limits,
      connections: part(limits.connections),
      connectionsPerAddress: part(limits.connectionsPerAddress),
    },
    flowControl: {
      ...flow,
      requestsInFlight: part(flow.requestsInFlight ?? defaultLimits.requestsInFlight),
      watches: part(flow.watches ?? defaultLimits.watches),
      connects: part(flow.connects ?? defaultLimits.connects),
    },
  };
}

/**
 * Further descriptors of a listening socket, one for each worker, which closes it. Node 20 cannot duplicate a
 * descriptor: a process receives the socket and returns it, and each transfer creates a descriptor.
 */
async function duplicates(socket: Server, count: number): Promise<number[]> {
  const { _handle: handle } = socket as Server & { readonly _handle: unknown };
  const child = fork('-e', [returned], { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  try {
    const descriptors: number[] = [];
    for (let i = 0; i < count; i++) {
      child.send('socket', handle as Server);
      const [, copy] = (await once(child, 'message')) as [string, { readonly fd: number }];
      copies.push(copy);
      descriptors.push(copy.fd);
    }
    return descriptors;
  } finally {
    child.disconnect();
  }
}

/** Handles of descriptors that belong to workers: collecting or closing them would close the descriptors. */
const copies: unknown[] = [];
