import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallOptions, NetworkAttachment, NetworkRequest } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import { NetworkError } from '../network-error.ts';
import { type Attachment, AttachmentFiles } from './attachment-files.ts';
import { addNetwork, type Calls, checkNetwork, deleteNetwork } from './call-network.ts';
import { withinDeadline } from './deadline.ts';
import { type JsonObject, type NetworkList, networkListOf } from './network-list.ts';
import { PluginProcess } from './plugin-process.ts';
import { ipsOf } from './result.ts';

/** Settings and services that all networks of CNI plugins use. */
export interface PluginHost {
  /** Folders of plugin programs, searched in order. */
  readonly binDirs: readonly string[];
  /** Folder for records of connected sandboxes and of assigned addresses. It must survive a restart of the agent. */
  readonly stateDirectory: string;
  /** Timeout of connecting or disconnecting a sandbox, in milliseconds; default two minutes. */
  readonly timeoutMs?: number;
  /**
   * Command line prefix of plugins, such as `nsenter --net=...` to run them in another network namespace than this
   * process.
   */
  readonly launch?: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The network that a sandbox is connected to. */
export interface Wanted {
  readonly list: NetworkList;
  readonly capabilityArgs: JsonObject;
  /** Called with the result of the plugins. An error fails the connection. */
  readonly afterwards?: (result: JsonObject, signal: AbortSignal) => Promise<void>;
}

type Which = Pick<NetworkRequest, 'sandboxId' | 'netnsPath'>;

const defaultTimeoutMs = 120_000;
const ifName = 'eth0';

/** The plugin that enables the loopback interface of a namespace. It is called for every sandbox. */
export const loopbackType = 'loopback';
const loopback = networkListOf({ cniVersion: '0.3.1', name: 'loopback', plugins: [{ type: loopbackType }] });

/** Connects sandboxes to networks, records how, and disconnects them with the recorded configuration. */
export class Attacher {
  readonly #host: PluginHost;
  readonly #files: AttachmentFiles;
  readonly #process: PluginProcess;
  readonly #queue = new KeyedQueue();
  readonly #pluginTurns = new KeyedQueue();

  constructor(host: PluginHost) {
    this.#host = host;
    this.#files = new AttachmentFiles(join(host.stateDirectory, 'sandboxes'), host.logger);
    this.#process = new PluginProcess(host.launch);
  }

  /** Connects a sandbox. `network` is called after earlier calls for the same sandbox have completed. */
  add(request: NetworkRequest, network: () => Promise<Wanted>, options: CallOptions = {}): Promise<NetworkAttachment> {
    const { sandboxId, netnsPath } = request;
    return this.#exclusive('network of a sandbox', sandboxId, options, async (signal) => {
      if ((await this.#files.read(sandboxId)) !== undefined) {
        throw new NetworkError('AlreadyExists', `sandbox ${sandboxId} already has a network`);
      }
      const { list, capabilityArgs, afterwards } = await network();
      signal.throwIfAborted();
      const netnsId = await netnsIdentity(netnsPath);
      if (netnsId === undefined) throw new NetworkError('InvalidArgument', `${netnsPath} is not a network namespace`);
      const attachment: Attachment = {
        sandboxId,
        netnsPath,
        netnsId,
        ifName,
        args: argsOf(request),
        capabilityArgs,
        list,
      };
      await this.#files.write(attachment);
      try {
        await addNetwork(loopback, { ...this.#calls(attachment, netnsPath, signal), ifName: 'lo' });
        const result = await addNetwork(list, this.#calls(attachment, netnsPath, signal));
        const ips = ipsOf(result);
        if (ips.length === 0)
          throw new NetworkError('Internal', `network ${list.name} assigned no address to the sandbox`);
        await afterwards?.(result, signal);
        signal.throwIfAborted();
        await this.#files.write({ ...attachment, result });
        return { ips };
      } catch (error) {
        await this.#afterFailure(attachment);
        throw error;
      }
    });
  }

  remove({ sandboxId, netnsPath }: Which, options: CallOptions = {}): Promise<void> {
    return this.#exclusive('removal of a network', sandboxId, options, async (signal) => {
      const attachment = await this.#files.read(sandboxId);
      if (attachment !== undefined) await this.#takeBack({ ...attachment, netnsPath }, signal);
      await this.#files.delete(sandboxId);
    });
  }

  check({ sandboxId, netnsPath }: Which, options: CallOptions = {}): Promise<void> {
    return this.#exclusive('check of a network', sandboxId, options, async (signal) => {
      const attachment = await this.#files.read(sandboxId);
      if (attachment?.result === undefined) throw new NetworkError('NotFound', `sandbox ${sandboxId} has no network`);
      await checkNetwork(attachment.list, this.#calls(attachment, netnsPath, signal), attachment.result);
    });
  }

  async sweep(known: ReadonlySet<string>, options: CallOptions = {}): Promise<void> {
    for (const sandboxId of await this.#files.all()) {
      if (known.has(sandboxId)) continue;
      const netnsPath = (await this.#files.read(sandboxId))?.netnsPath ?? '';
      await this.remove({ sandboxId, netnsPath }, options).catch((err) => {
        this.#host.logger.warn('failed to remove the network of a sandbox that no longer exists', { sandboxId, err });
      });
    }
  }

  /** Removes an incomplete connection. Has its own timeout and continues when the caller has canceled. */
  async #afterFailure(attachment: Attachment): Promise<void> {
    const { clock, logger, timeoutMs = defaultTimeoutMs } = this.#host;
    const { sandboxId } = attachment;
    try {
      await withinDeadline(clock, 'removal of a network', timeoutMs, {}, (signal) =>
        this.#takeBack(attachment, signal),
      );
      await this.#files.delete(sandboxId);
    } catch (err) {
      logger.warn('failed to clean up after a network error', { sandboxId, err });
    }
  }

  async #takeBack(attachment: Attachment, signal: AbortSignal): Promise<void> {
    const netnsPath = await liveNetns(attachment.netnsPath, attachment.netnsId);
    await deleteNetwork(attachment.list, this.#calls(attachment, netnsPath, signal), attachment.result);
  }

  #calls({ sandboxId, ifName, args, capabilityArgs }: Attachment, netnsPath: string, signal: AbortSignal): Calls {
    const { binDirs } = this.#host;
    const turns = this.#pluginTurns;
    return { process: this.#process, binDirs, sandboxId, netnsPath, ifName, args, capabilityArgs, signal, turns };
  }

  #exclusive<T>(
    what: string,
    sandboxId: string,
    options: CallOptions,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, timeoutMs = defaultTimeoutMs } = this.#host;
    return this.#queue.run(sandboxId, () => withinDeadline(clock, `${what} (${sandboxId})`, timeoutMs, options, work));
  }
}

/** The value of CNI_ARGS with the Kubernetes arguments. The values are names, so they contain no semicolons. */
function argsOf({ namespace, name, sandboxId, uid }: NetworkRequest): string {
  const words = {
    IgnoreUnknown: '1',
    K8S_POD_NAMESPACE: namespace,
    K8S_POD_NAME: name,
    K8S_POD_INFRA_CONTAINER_ID: sandboxId,
  };
  return Object.entries({ ...words, ...(uid && { K8S_POD_UID: uid }) })
    .map(([key, value]) => `${key}=${value}`)
    .join(';');
}

/** Runs functions with the same key one after the other, in the order of the calls. */
class KeyedQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#tails.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#tails.get(key) === mine) this.#tails.delete(key);
    }
  }
}

/** Types of file systems with namespace files: nsfs, and proc in old kernels. */
const types = new Set([0x6e736673, 0x9fa0]);

/** Identity of the namespace at a path; undefined without a namespace. */
async function netnsIdentity(path: string): Promise<string | undefined> {
  if (path === '') return undefined;
  try {
    if (!types.has((await statfs(path)).type)) return undefined;
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/**
 * Returns the path if the namespace at this path has this identity; otherwise an empty text, as CNI requires when the
 * namespace no longer exists. The identity is compared because a path below /proc refers to another namespace, possibly
 * that of the machine, once the process id was reused.
 */
async function liveNetns(path: string, identity: string | undefined): Promise<string> {
  return identity !== undefined && (await netnsIdentity(path)) === identity ? path : '';
}
